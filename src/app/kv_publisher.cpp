#include "app/kv_publisher.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/wall_time.h"
#include "net/rpc_endpoint.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kIdsOfALog = std::uint64_t{1} << 40;
constexpr Duration kBetweenTellings = seconds(1);
constexpr Duration kBetweenTries = milliseconds(10);
constexpr int kSubscriberQueue = static_cast<int>(kSizeLimit<"kv_event_queue">);
// That are taken at once, so that the thread has time for all else.
constexpr int kSubscriptionsAtOnce = 1024;
constexpr std::uint64_t kEndOfReplay = UINT64_MAX;

std::string topic_or_standard(const std::string& topic) {
  if (!topic.empty()) return topic;
  std::array<char, 256> host{};
  const bool known = ::gethostname(host.data(), host.size() - 1) == 0;
  return "kv@" + std::string(known ? host.data() : "localhost") + "@{model}";
}

std::string big_endian(std::uint64_t number) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[7 - i] = static_cast<char>(number >> (8 * i) & 0xFF);
  return out;
}

std::uint64_t from_big_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (const char byte : bytes) out = out << 8 | static_cast<unsigned char>(byte);
  return out;
}

bool is_private(const std::string& host) {
  const auto address = net::read_ipv4(host);
  return address ? net::is_private_address(*address) : host == "[::1]";
}

// Events have what clients ask, and ZeroMQ bounds neither connections nor subscriptions. An endpoint that is connected
// to has been chosen.
Result<void> check_address(const std::string& flag, const std::string& endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  const Result<bool> server = publish::listens(endpoint);
  if (!server) return server.error();
  if (!*server || !endpoint.starts_with(kTcp)) return {};
  if (is_private(endpoint.substr(kTcp.size(), endpoint.rfind(':') - kTcp.size()))) return {};
  return invalid_field(flag, flag + ' ' + endpoint +
                                 " may be reached from other networks, which could read what clients ask and exhaust "
                                 "the memory: name an address of a private network, or say --kv-events-public");
}

const char* role_of(const std::string& endpoint) {
  const Result<bool> server = publish::listens(endpoint);
  return server && *server ? "listens" : "connects";
}

}  // namespace

Result<std::unique_ptr<KvPublisher>> KvPublisher::open(const publish::KvEventsConfig& config, HoldingOwner owner) {
  for (const auto& [flag, endpoint] :
       {std::pair("--kv-events", config.endpoint), std::pair("--kv-events-replay", config.replay)}) {
    if (endpoint.empty() || config.anywhere) continue;
    if (auto usable = check_address(flag, endpoint); !usable) return usable.error();
  }
  const auto library = publish::zmq_library();
  if (!library) return library.error();
  std::unique_ptr<KvPublisher> out(new KvPublisher(config, owner, **library));
  auto publisher = publish::ZmqSocket::open(out->context_, publish::ZmqSocketKind::xpub, config.endpoint, "--kv-events",
                                            kSubscriberQueue);
  if (!publisher) return publisher.error();
  out->publisher_ = std::move(*publisher);
  std::string replay = "off";
  if (!config.replay.empty()) {
    auto opened = publish::ZmqSocket::open(out->context_, publish::ZmqSocketKind::router, config.replay,
                                           "--kv-events-replay", kSubscriberQueue);
    if (!opened) return opened.error();
    out->replay_ = std::move(*opened);
    replay = out->replay_->endpoint();
  }
  log_info("KV events",
           {{role_of(config.endpoint), out->publisher_->endpoint()}, {"replay", replay}, {"topic", out->topic_}});
  out->thread_ = std::thread([publisher = out.get()] { publisher->run(); });
  return out;
}

KvPublisher::KvPublisher(const publish::KvEventsConfig& config, HoldingOwner owner, const publish::ZmqLibrary& library)
    : topic_(topic_or_standard(config.topic)),
      owner_(owner),
      hash_(publish::BlockHasher::new_secret()),
      kept_(config.replay.empty() ? publish::KeptLimits{0, 0} : publish::KeptLimits{}),
      context_(library),
      inbox_(1, [this] { wakeup_.signal(); }) {}

KvPublisher::~KvPublisher() {
  ends_.store(true);
  wakeup_.signal();
  if (thread_.joinable()) thread_.join();
}

std::string KvPublisher::topic_of(const std::string& model) const {
  std::string topic = topic_;
  const auto at = topic.find(publish::kModelPlace);
  return at == std::string::npos ? topic : topic.replace(at, publish::kModelPlace.size(), model);
}

std::unique_ptr<HoldingLog> KvPublisher::holdings(const std::string& model) {
  const std::string topic = topic_of(model);
  tell({topic, {}});  // it is there, and holds nothing
  const std::uint64_t first = logs_.fetch_add(1) * kIdsOfALog + 1;
  return std::make_unique<HoldingLog>(owner_, first, [this, topic](HoldingChanges& changes) {
    tell({topic, {.changes = std::exchange(changes, {})}});
  });
}

void KvPublisher::name_adapters(const std::string& model, publish::AdapterNames names) {
  tell({topic_of(model), {.names = std::move(names)}});
}

void KvPublisher::tell(Told told) {
  metrics_.waiting.add(1);
  inbox_.merge(std::move(told), [](Told& waiting, Told& later) {
    if (waiting.topic != later.topic) return false;
    waiting.news.changes.add(later.news.changes);
    if (later.news.names) waiting.news.names = std::move(later.news.names);
    waiting.count += later.count;
    return true;
  });
}

void KvPublisher::run() {
  name_this_thread("kv-events");
  std::vector<Told> told;
  while (!ends_.load()) {
    wait();
    inbox_.drain(told);
    for (Told& each : told) {
      Model& model = model_of(each.topic);
      model.channel.apply(std::move(each.news), wall_time(), batches_);
      send(model, batches_);
      metrics_.waiting.add(-each.count);
    }
    take_subscriptions();
    tell_owed();
    if (replay_) take_request();
    for (auto at = replays_.begin(); at != replays_.end();) {
      at = repeat(at->first, at->second) ? replays_.erase(at) : std::next(at);
    }
  }
  for (auto& [topic, model] : models_) {
    model.channel.clear(wall_time(), batches_);
    send(model, batches_);
  }
}

void KvPublisher::wait() {
  const bool owed = std::ranges::any_of(models_, [](const auto& each) { return each.second.owed; });
  const bool deaf = wakeup_.fd() < 0;
  std::array<publish::ZmqPollItem, 3> items{};
  int count = 0;
  items[static_cast<std::size_t>(count++)] = {publisher_->get(), -1, publish::kZmqReadable, 0};
  if (replay_) items[static_cast<std::size_t>(count++)] = {replay_->get(), -1, publish::kZmqReadable, 0};
  if (!deaf) items[static_cast<std::size_t>(count++)] = {nullptr, wakeup_.fd(), publish::kZmqReadable, 0};
  long most = deaf || owed ? kBetweenTellings / milliseconds(1) / 10 : -1;
  if (!replays_.empty()) most = kBetweenTries / milliseconds(1);
  context_.library.poll(items.data(), count, most);
  wakeup_.acknowledge();
}

// A message of one frame: 1 and the beginning of the topics; 0 where a subscription ends. The socket may never be
// empty: where a peer repeats its subscription as fast as it can, the rest waits for the next turn.
void KvPublisher::take_subscriptions() {
  for (int taken = 0; taken < kSubscriptionsAtOnce && !ends_.load(); ++taken) {
    const auto frames = publisher_->receive();
    if (!frames) return;
    const std::string_view text = frames->front();
    if (text.empty() || text.front() != 1) continue;
    for (auto& [topic, model] : models_) model.owed |= topic.starts_with(text.substr(1));
  }
}

void KvPublisher::tell_owed() {
  const TimePoint now = clock_.now();
  for (auto& [topic, model] : models_) {
    if (!model.owed || now - model.told_all < kBetweenTellings) continue;
    model.owed = false;
    model.told_all = now;
    model.channel.tell_all(wall_time(), batches_);
    send(model, batches_);
  }
}

// One request for each turn of the thread: [client, "", number]. One that comes before the end of an answer takes its
// place.
void KvPublisher::take_request() {
  const auto frames = replay_->receive();
  if (!frames) return;
  if (frames->size() != 3 || frames->back().size() != 8) {
    if (!std::exchange(warned_, true)) {
      log_warning("a request to --kv-events-replay is not as it should be; later ones are not logged",
                  {{"frames", frames->size()}});
    }
    return;
  }
  metrics_.replays.add();
  Replay& replay = replays_[frames->front()] = {};
  if (models_.empty()) return;  // it gets the end
  Model& model = models_.begin()->second;
  replay.next = model.channel.repeats_from(from_big_endian(frames->back()), wall_time(), batches_);
  replay.end = model.channel.next();
  send(model, batches_);
}

// Whether the client has all, or has gone. Batches that are not kept any more end the answer: the client sees a gap,
// and asks again.
bool KvPublisher::repeat(const std::string& client, Replay& replay) {
  for (;; ++replay.next) {
    const publish::KvBatch* batch = nullptr;
    if (replay.next < replay.end) batch = models_.begin()->second.channel.kept(replay.next);
    const publish::ZmqSent sent = batch != nullptr
                                      ? replay_->send({client, "", big_endian(batch->number), *batch->payload})
                                      : replay_->send({client, "", big_endian(kEndOfReplay), ""});
    if (sent == publish::ZmqSent::full) return false;
    if (sent == publish::ZmqSent::gone || batch == nullptr) return true;
  }
}

KvPublisher::Model& KvPublisher::model_of(const std::string& topic) {
  return models_.try_emplace(topic, topic, hash_, metrics_, kept_).first->second;
}

void KvPublisher::send(const Model& model, std::vector<publish::KvBatch>& batches) {
  for (const publish::KvBatch& batch : batches) {
    const auto sent = publisher_->send({model.topic, big_endian(batch.number), *batch.payload});
    (sent == publish::ZmqSent::yes ? metrics_.batches : metrics_.dropped).add();
  }
  batches.clear();
}

double KvPublisher::wall_time() const {
  return static_cast<double>(clock_.now().time_since_epoch() / std::chrono::nanoseconds(1) +
                             unix_nanoseconds_of_zero()) /
         1e9;
}

}  // namespace chasqui
