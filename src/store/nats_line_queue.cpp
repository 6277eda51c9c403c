#include "store/nats_line_queue.h"

#include <algorithm>
#include <utility>

#include "store/redis_connection.h"

namespace chasqui::store {
namespace {

constexpr const char* kLineStream = "chasqui_batch_lines";
constexpr const char* kResultStream = "chasqui_batch_results";
const std::string kLineSubjects = "chasqui.batch.lines.";
const std::string kResultSubjects = "chasqui.batch.results.";
constexpr const char* kWithdrawnSubject = "chasqui.batch.withdrawn";
const std::string kNodes = "nodes";
// A batch has ended by then, and its lines and results are of no use.
constexpr Duration kStreamAge = std::chrono::hours(24 * 32);
// Results wait for the disk of their home.
constexpr Duration kResultIdle = std::chrono::seconds(60);
constexpr std::int64_t kTakenMost = 65'536;
constexpr std::int64_t kFetchMs = 10;
constexpr std::size_t kFetchMost = 64;
constexpr std::size_t kWithdrawnMost = 4096;

std::int64_t ms_of(Duration time) { return time / std::chrono::milliseconds(1); }
std::int64_t ns_of(Duration time) { return time / std::chrono::nanoseconds(1); }
std::string subject_of(const std::string& home, const LineKey& key) { return kLineSubjects + home + '.' + key.text(); }

// What the library has made, and how it goes.
template <class T, class Destroy>
class Made {
 public:
  explicit Made(Destroy destroy) : destroy_(destroy) {}
  ~Made() {
    if (made_ != nullptr) destroy_(made_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  T** out() { return &made_; }
  T* get() const { return made_; }

 private:
  T* made_ = nullptr;
  const Destroy destroy_;
};

}  // namespace

std::string NatsAddress::shown() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return "nats://" + (is_ipv6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

// The parts are those of Redis' URLs, but for a database.
Result<NatsAddress> read_nats_address(std::string_view url) {
  constexpr std::string_view kScheme = "nats://";
  if (!url.starts_with(kScheme)) return invalid_field("", "it is not nats://[USER:PASSWORD@]HOST[:PORT]");
  const std::string_view rest = url.substr(kScheme.size());
  const std::string_view place = rest.substr(rest.rfind('@') + 1);
  if (place.find('/') != std::string_view::npos) return invalid_field("", "behind its host and port stands nothing");
  auto read = read_redis_address("redis://" + std::string(rest));
  if (!read) return read.error();
  if (!read->password.empty() && read->user.empty()) {
    return invalid_field("", "before the '@' stands USER:PASSWORD");
  }
  const std::size_t bracket = place.rfind(']');
  const bool has_port = place.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
  NatsAddress out{std::move(read->host), 4222, std::move(read->user), std::move(read->password)};
  if (has_port) out.port = read->port;
  return out;
}

struct NatsLineQueue::NatsLink {
  explicit NatsLink(const NatsLibrary& library) : nats(library) {}
  ~NatsLink() {
    for (natsSubscription* const each : {lines, results, withdrawn}) {
      if (each != nullptr) nats.subscription_destroy(each);
    }
    if (jetstream != nullptr) nats.jetstream_destroy(jetstream);
    if (connection != nullptr) nats.connection_destroy(connection);
  }
  NatsLink(const NatsLink&) = delete;
  NatsLink& operator=(const NatsLink&) = delete;

  const NatsLibrary& nats;
  natsConnection* connection = nullptr;
  jsCtx* jetstream = nullptr;
  natsSubscription* lines = nullptr;
  natsSubscription* results = nullptr;
  natsSubscription* withdrawn = nullptr;
};

NatsLineQueue::NatsLineQueue(const NatsLibrary& library, NatsAddress address, Duration patience)
    : nats_(library), address_(std::move(address)), patience_(patience) {}

NatsLineQueue::~NatsLineQueue() = default;

// The next call to open() connects again.
Error NatsLineQueue::broken(const std::string& what, natsStatus status) {
  link_.reset();
  return Error{ErrorCode::unavailable,
               "NATS at " + shown() + " does not " + what + ": " + std::string(nats_.status_text(status)), ""};
}

Result<void> NatsLineQueue::connect() {
  link_ = std::make_unique<NatsLink>(nats_);
  Made<natsOptions, decltype(nats_.options_destroy)> options(nats_.options_destroy);
  if (const natsStatus made = nats_.options_create(options.out()); made != NATS_OK) return broken("connect", made);
  const bool is_ipv6 = address_.host.find(':') != std::string::npos;
  const std::string url =
      "nats://" + (is_ipv6 ? '[' + address_.host + ']' : address_.host) + ':' + std::to_string(address_.port);
  nats_.set_url(options.get(), url.c_str());
  nats_.set_name(options.get(), home_.c_str());
  nats_.set_timeout(options.get(), ms_of(patience_));
  nats_.set_allow_reconnect(options.get(), false);
  if (!address_.user.empty()) {
    nats_.set_user_info(options.get(), address_.user.c_str(), address_.password.c_str());
  }
  if (const natsStatus made = nats_.connect(&link_->connection, options.get()); made != NATS_OK) {
    return broken("answer", made);
  }
  jsOptions js;
  nats_.js_options_init(&js);
  js.Wait = ms_of(patience_);
  const natsStatus made = nats_.jetstream(&link_->jetstream, link_->connection, &js);
  if (made != NATS_OK) return broken("have JetStream", made);
  return {};
}

Result<void> NatsLineQueue::make_stream(const char* name, const char* subjects) {
  jsStreamConfig config;
  nats_.stream_config_init(&config);
  config.Name = name;
  config.Subjects = &subjects;
  config.SubjectsLen = 1;
  config.Retention = js_WorkQueuePolicy;
  config.Storage = js_FileStorage;
  config.MaxAge = ns_of(kStreamAge);
  jsErrCode error{};
  Made<jsStreamInfo, decltype(nats_.stream_info_destroy)> info(nats_.stream_info_destroy);
  const natsStatus made = nats_.add_stream(info.out(), link_->jetstream, &config, nullptr, &error);
  if (made == NATS_OK || error == JSStreamNameExistErr) return {};
  return broken("make the stream " + std::string(name), made);
}

Result<void> NatsLineQueue::make_consumer(const char* stream, const std::string& name, const std::string& subject,
                                          Duration idle) {
  jsConsumerConfig config;
  nats_.consumer_config_init(&config);
  config.Durable = name.c_str();
  config.AckPolicy = js_AckExplicit;
  config.AckWait = ns_of(idle);
  config.MaxDeliver = -1;
  config.MaxAckPending = kTakenMost;
  config.FilterSubject = subject.c_str();
  config.InactiveThreshold = ns_of(kStreamAge);
  jsErrCode error{};
  Made<jsConsumerInfo, decltype(nats_.consumer_info_destroy)> info(nats_.consumer_info_destroy);
  const natsStatus made = nats_.add_consumer(info.out(), link_->jetstream, stream, &config, nullptr, &error);
  if (made == NATS_OK) return {};
  return broken("make the consumer " + name, made);
}

Result<void> NatsLineQueue::subscribe(natsSubscription*& out, const char* stream, const std::string& consumer,
                                      const std::string& subject) {
  jsSubOptions options;
  nats_.sub_options_init(&options);
  options.Stream = stream;
  options.Consumer = consumer.c_str();
  jsErrCode error{};
  const natsStatus made =
      nats_.pull_subscribe(&out, link_->jetstream, subject.c_str(), consumer.c_str(), nullptr, &options, &error);
  if (made != NATS_OK) return broken("give the consumer " + consumer, made);
  return {};
}

Result<void> NatsLineQueue::open() {
  link_.reset();
  if (auto made = connect(); !made) return made;
  const std::string lines = kLineSubjects + '>';
  const std::string results = kResultSubjects + '>';
  const std::string own = kResultSubjects + home_;
  if (auto made = make_stream(kLineStream, lines.c_str()); !made) return made;
  if (auto made = make_stream(kResultStream, results.c_str()); !made) return made;
  if (auto made = make_consumer(kLineStream, kNodes, lines, kQueueIdle); !made) return made;
  if (auto made = make_consumer(kResultStream, home_, own, kResultIdle); !made) return made;
  if (auto made = subscribe(link_->lines, kLineStream, kNodes, lines); !made) return made;
  if (auto made = subscribe(link_->results, kResultStream, home_, own); !made) return made;
  const natsStatus heard = nats_.subscribe(&link_->withdrawn, link_->connection, kWithdrawnSubject);
  if (heard != NATS_OK) return broken("subscribe", heard);
  return {};
}

// Whether the server has kept it. `only_if_none`: where a message with this subject is there, it is not kept again.
Result<Posted> NatsLineQueue::send(const std::string& subject, const std::string& message, bool only_if_none) {
  if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
  const std::int64_t most = nats_.max_payload(link_->connection);
  if (static_cast<std::int64_t>(message.size()) > most - 1024) return Posted::too_large;
  jsPubOptions options;
  nats_.pub_options_init(&options);
  options.MaxWait = ms_of(patience_);
  options.ExpectNoMessage = only_if_none;
  jsErrCode error{};
  Made<jsPubAck, decltype(nats_.pub_ack_destroy)> ack(nats_.pub_ack_destroy);
  const natsStatus sent = nats_.js_publish(ack.out(), link_->jetstream, subject.c_str(), message.data(),
                                           static_cast<int>(message.size()), &options, &error);
  if (sent == NATS_OK) return Posted::yes;
  if (error == JSStreamWrongLastSequenceErr) return Posted::already;
  return broken("keep messages", sent);
}

// What is said of a delivery goes to its reply subject, also over a later connection.
Result<void> NatsLineQueue::tell(const std::string& receipt, std::string_view what) {
  if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
  const natsStatus sent = nats_.publish(link_->connection, receipt.c_str(), what.data(), static_cast<int>(what.size()));
  if (sent != NATS_OK) return broken("take acknowledgements", sent);
  return {};
}

Result<void> NatsLineQueue::flush() {
  const natsStatus done = nats_.flush(link_->connection, ms_of(patience_));
  if (done != NATS_OK) return broken("answer", done);
  return {};
}

Result<std::vector<Posted>> NatsLineQueue::publish(std::span<const LinePost> lines) {
  std::vector<Posted> out;
  for (const LinePost& line : lines) {
    const auto sent = send(subject_of(home_, line.key), line.message, true);
    if (!sent) return sent.error();
    out.push_back(*sent);
  }
  return out;
}

// One by one: after a purge of a subject, servers of version 2.9 no longer hand out what is left.
Result<void> NatsLineQueue::withdraw(std::span<const LineKey> lines) {
  for (const LineKey& line : lines) {
    if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
    const std::string subject = subject_of(home_, line);
    jsErrCode error{};
    Made<natsMsg, decltype(nats_.message_destroy)> last(nats_.message_destroy);
    const natsStatus found =
        nats_.last_message(last.out(), link_->jetstream, kLineStream, subject.c_str(), nullptr, &error);
    if (found == NATS_OK) {
      const std::uint64_t number = nats_.message_sequence(last.get());
      const natsStatus done = nats_.delete_message(link_->jetstream, kLineStream, number, nullptr, &error);
      // It may be acknowledged at this moment.
      if (done != NATS_OK && error == 0) return broken("withdraw lines", done);
    } else if (found != NATS_NOT_FOUND && error != JSNoMessageFoundErr) {
      return broken("say what it has", found);
    }
    if (auto told = tell(kWithdrawnSubject, subject); !told) return told;
  }
  return {};
}

Result<std::vector<LineKey>> NatsLineQueue::outstanding() {
  if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
  const std::string prefix = kLineSubjects + home_ + '.';
  const std::string filter = prefix + '>';
  jsOptions options;
  nats_.js_options_init(&options);
  options.Wait = ms_of(patience_);
  options.Stream.Info.SubjectsFilter = filter.c_str();
  jsErrCode error{};
  Made<jsStreamInfo, decltype(nats_.stream_info_destroy)> info(nats_.stream_info_destroy);
  const natsStatus done = nats_.stream_info(info.out(), link_->jetstream, kLineStream, &options, &error);
  if (done != NATS_OK) return broken("say what it has", done);
  std::vector<LineKey> out;
  const jsStreamStateSubjects* const found = info.get()->State.Subjects;
  for (int i = 0; found != nullptr && i < found->Count; ++i) {
    const std::string_view subject = found->List[i].Subject;
    if (!subject.starts_with(prefix)) continue;
    if (auto key = read_line_key(subject.substr(prefix.size()))) out.push_back(std::move(*key));
  }
  return out;
}

Result<std::vector<TakenMessage>> NatsLineQueue::fetch(natsSubscription* from, std::size_t most) {
  std::vector<TakenMessage> out;
  natsMsgList list{};
  jsErrCode error{};
  const natsStatus done = nats_.fetch(&list, from, static_cast<int>(std::min(most, kFetchMost)), kFetchMs, &error);
  if (done == NATS_TIMEOUT || done == NATS_NOT_FOUND) return out;
  if (done != NATS_OK) return broken("give messages", done);
  for (int i = 0; i < list.Count; ++i) {
    natsMsg* const message = list.Msgs[i];
    const char* const reply = nats_.message_reply(message);
    if (reply == nullptr) continue;
    Made<jsMsgMetaData, decltype(nats_.metadata_destroy)> about(nats_.metadata_destroy);
    TakenMessage taken;
    taken.receipt = reply;
    if (nats_.message_metadata(about.out(), message) == NATS_OK) taken.deliveries = about.get()->NumDelivered;
    taken.message.assign(nats_.message_data(message), static_cast<std::size_t>(nats_.message_size(message)));
    out.push_back(std::move(taken));
  }
  nats_.list_destroy(&list);
  return out;
}

Result<std::vector<TakenMessage>> NatsLineQueue::results(std::size_t most, std::size_t bytes) {
  if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
  const auto payload = static_cast<std::size_t>(std::max<std::int64_t>(1, nats_.max_payload(link_->connection)));
  return fetch(link_->results, std::min(most, bytes / std::min(payload, kSharedResultMost)));
}

Result<void> NatsLineQueue::acknowledge(std::span<const LinePost> results) {
  for (const LinePost& result : results) {
    if (auto told = tell(result.receipt, "+ACK"); !told) return told;
  }
  return flush();
}

Result<std::vector<TakenMessage>> NatsLineQueue::take(std::size_t most) {
  if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
  return fetch(link_->lines, most);
}

void NatsLineQueue::hear_withdrawals() {
  natsMsg* message = nullptr;
  while (nats_.next_message(&message, link_->withdrawn, 0) == NATS_OK) {
    const std::string_view subject(nats_.message_data(message), static_cast<std::size_t>(nats_.message_size(message)));
    if (subject.starts_with(kLineSubjects) && withdrawn_.size() < kWithdrawnMost) withdrawn_.emplace(subject);
    nats_.message_destroy(message);
  }
}

Result<std::vector<std::string>> NatsLineQueue::keep(std::span<const LinePost> lines) {
  if (!link_) return broken("answer", NATS_CONNECTION_CLOSED);
  hear_withdrawals();
  std::vector<std::string> lost;
  for (const LinePost& line : lines) {
    if (withdrawn_.contains(subject_of(line.home, line.key))) {
      lost.push_back(line.receipt);
    } else if (auto told = tell(line.receipt, "+WPI"); !told) {
      return told.error();
    }
  }
  withdrawn_.clear();
  if (auto flushed = flush(); !flushed) return flushed.error();
  return lost;
}

Result<Posted> NatsLineQueue::answer(const LinePost& line) {
  const auto sent = send(kResultSubjects + line.home, line.message, false);
  if (!sent || *sent == Posted::too_large) return sent;
  if (auto told = tell(line.receipt, "+ACK"); !told) return told.error();
  return Posted::yes;
}

// Sent first: a line that is there twice is run twice, one that is gone has to be missed.
Result<void> NatsLineQueue::give_back(const LinePost& line) {
  const auto sent = send(subject_of(line.home, line.key), line.message, false);
  if (!sent) return sent.error();
  return *sent == Posted::too_large ? Result<void>() : tell(line.receipt, "+ACK");  // then it comes back by itself
}

Result<void> NatsLineQueue::drop(const LinePost& line) { return tell(line.receipt, "+ACK"); }

}  // namespace chasqui::store
