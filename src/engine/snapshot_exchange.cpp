#include "engine/snapshot_exchange.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/thread_name.h"

namespace chasqui {
namespace {

constexpr std::size_t kOffersMax = kSizeLimit<"shared_offers">;
// Heads that are asked for together, and outcomes that a worker is told of before it can take a step.
constexpr std::size_t kToldAtOnce = 16;
// A list takes at most a part of the time.
constexpr int kLookShare = 20;
constexpr Duration kLookPauseMax = std::chrono::minutes(1);
// One that is larger is not sent: it would take twice its size of memory.
constexpr std::uint64_t kSentMax = std::uint64_t{1} << 30;
constexpr int kTries = 3;
// Between its two objects a node writes for less time, so what has been alone for so long stays alone.
constexpr std::int64_t kStrayAfter = 3600;
// Looks between two tries to send, where the store refuses.
constexpr int kSendAgain = 6;
constexpr Duration kStraysEvery = std::chrono::minutes(10);
constexpr std::size_t kContentsMax = 65'536;
// Beyond the limit so much goes at once.
constexpr std::uint64_t kSlack = 20;

// What is wrong with a snapshot, whichever node reads it.
bool is_damaged(const Error& error) { return error.code == ErrorCode::invalid_request; }

// It cannot be used here, and asking again would not change that.
bool is_final(const Error& error) {
  return is_damaged(error) || error.code == ErrorCode::conflict || error.code == ErrorCode::too_large ||
         error.code == ErrorCode::not_found;
}

// Never refused: a caller waits for it, or what bounds it is elsewhere.
template <class Item>
void push_one(Mailbox<Item>& mailbox, Item item) {
  std::vector<Item> one;
  one.push_back(std::move(item));
  mailbox.push_all(one);
}

}  // namespace

SnapshotExchange::SnapshotExchange(Parts parts, const Clock& clock)
    : stores_(std::move(parts.stores)),
      folder_(std::move(parts.folder)),
      limits_(parts.limits),
      clock_(clock),
      inbox_(kOffersMax),
      reads_(kOffersMax) {}

void SnapshotExchange::start() {
  log_info("snapshots are shared", {{"store", stores_.index->place()}, {"bytes", stores_.bytes}});
  lister_ = std::thread([this] {
    name_this_thread("snapshot-share");
    run();
  });
  reader_ = std::thread([this] {
    name_this_thread("snapshot-fetch");
    run_reads();
  });
}

void SnapshotExchange::stop() {
  ends_.store(true);
  inbox_.close();
  reads_.close();
  if (lister_.joinable()) lister_.join();
  if (reader_.joinable()) reader_.join();
  std::vector<Job> left;
  inbox_.drain(left);
  for (Job& job : left) {
    if (auto* erasure = std::get_if<Erasure>(&job)) erasure->erased(0, false);
  }
}

void SnapshotExchange::take(std::size_t worker, std::vector<DiskOrder>& orders) {
  std::vector<Job> jobs;
  std::vector<ReadJob> reads;
  std::erase_if(orders, [&](const DiskOrder& order) {
    if (order.kind == DiskOrder::Kind::sync) return false;  // its `file` is a ticket
    // What is used goes back into the store, where it made room for others meanwhile.
    if (order.kind == DiskOrder::Kind::touch && !inbox_.over_capacity()) jobs.emplace_back(Offer{order.file, {}});
    if (!is_shared_file(order.file)) return false;
    if (order.kind == DiskOrder::Kind::read) reads.emplace_back(Read{order.file, worker});
    return true;
  });
  inbox_.push_all(jobs);
  reads_.push_all(reads);
}

void SnapshotExchange::offer(std::uint64_t file, std::uint64_t tenant) { push_one(inbox_, Job(Offer{file, tenant})); }

void SnapshotExchange::erase(std::uint64_t tenant, Erased erased) {
  if (ends_.load()) return erased(0, false);
  push_one(inbox_, Job(Erasure{tenant, std::move(erased)}));
}

void SnapshotExchange::run() {
  std::vector<Job> jobs;
  for (;;) {
    const TimePoint now = clock_.now();
    TimePoint next = next_look_;
    if (!offers_.empty()) next = std::min(next, next_send_);
    if (!to_tell_.empty() || !gone_.empty()) next = now;
    const bool came = inbox_.drain_within(jobs, std::max(next - now, Duration(0)));
    if (came && jobs.empty()) return;  // closed
    for (Job& job : jobs) take_job(job);
    if (ends_.load()) continue;  // as soon as nothing waits for an answer
    if (clock_.now() >= next_look_) look();
    tell_some();
    send_one();
  }
}

void SnapshotExchange::take_job(Job& job) {
  if (auto* erasure = std::get_if<Erasure>(&job)) return erase_now(*erasure);
  if (const auto* damaged = std::get_if<Damaged>(&job)) return remove_damaged(damaged->file);
  const Offer& offer = std::get<Offer>(job);
  if (std::ranges::any_of(offers_, [&](const Offer& waits) { return waits.file == offer.file; })) return;
  const auto content = contents_.find(offer.file);
  if (content != contents_.end() && is_there(content->second)) return;
  offers_.push_back(offer);
  if (offers_.size() <= kOffersMax) return;
  offers_.pop_front();
  metrics_.dropped.add();
}

void SnapshotExchange::failed(const Error& error, bool& complained) {
  metrics_.failures.add();
  if (std::exchange(complained, true)) return;
  log_warning("snapshots are not shared for now", {{"store", stores_.index->place()}, {"reason", error.message}});
}

void SnapshotExchange::works(bool& complained) {
  if (std::exchange(complained, false)) log_info("snapshots are shared again", {{"store", stores_.index->place()}});
}

void SnapshotExchange::forget_name(const std::string& name) {
  const auto there = there_.find(name);
  if (there == there_.end()) return;
  bytes_ -= there->second.bytes;
  there_.erase(there);
  const auto number = numbers_.extract(name);
  if (!number.empty()) gone_.push_back(number.mapped());
}

// Compares what there is with what was.
void SnapshotExchange::look() {
  const TimePoint began = clock_.now();
  auto listed = stores_.index->list();
  const TimePoint now = clock_.now();
  next_look_ = now;
  if (stores_.look_every > Duration::zero()) {
    next_look_ += std::max(stores_.look_every, std::min(kLookShare * (now - began), kLookPauseMax));
  }
  if (!listed) return failed(listed.error(), complained_of_lists_);
  works(complained_of_lists_);
  std::set<std::string> names;
  std::set<Checksum> contents;
  std::vector<SharedSnapshot> unwanted;
  for (SharedSnapshot& snapshot : *listed) {
    // Two nodes have put it there at once, or one by itself is more than all may be.
    if (!contents.insert(snapshot.content).second || snapshot.bytes > stores_.bytes) {
      unwanted.push_back(std::move(snapshot));
      continue;
    }
    names.insert(snapshot.name);
    const auto [there, is_new] = there_.try_emplace(snapshot.name, snapshot);
    if (!is_new) continue;
    bytes_ += snapshot.bytes;
    if (snapshot.is_of_model) to_tell_.push_back(snapshot.name);
  }
  std::vector<std::string> gone;
  for (const auto& [name, snapshot] : there_) {
    if (!names.contains(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) forget_name(name);
  if (!unwanted.empty()) (void)stores_.index->remove(unwanted);
  if (auto room = make_room(0); !room) failed(room.error(), complained_of_sends_);
  if (began < next_strays_) return;
  next_strays_ = began + kStraysEvery;
  const auto strays = stores_.index->remove_strays(clock_.unix_seconds() - kStrayAfter);
  if (!strays) failed(strays.error(), complained_of_sends_);
}

// A few at a time, since workers put them into their index between two steps.
void SnapshotExchange::tell_some() {
  for (std::size_t told = 0; told < kToldAtOnce && !gone_.empty(); ++told) {
    push_one(reads_, ReadJob(Named{gone_.back(), {}}));
    tell({.kind = DiskOrder::Kind::gone, .file = gone_.back()});
    gone_.pop_back();
  }
  std::vector<SharedSnapshot> of;
  while (of.size() < kToldAtOnce && !to_tell_.empty()) {
    const auto there = there_.find(to_tell_.front());
    if (there != there_.end()) of.push_back(there->second);
    to_tell_.pop_front();
  }
  if (!of.empty()) tell_of(of);
  metrics_.snapshots.set(static_cast<std::int64_t>(numbers_.size()));
  metrics_.bytes.set(static_cast<std::int64_t>(bytes_));
}

void SnapshotExchange::tell_of(const std::vector<SharedSnapshot>& of) {
  auto heads = stores_.index->heads(of, limits_);
  std::vector<SharedSnapshot> damaged;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const std::string& name = of[i].name;
    if (!heads[i]) {
      const Error& error = heads[i].error();
      if (is_damaged(error)) damaged.push_back(of[i]);
      if (is_final(error)) continue;
      failed(error, complained_of_heads_);
      // It, and what is left, is new again in the next list.
      for (std::size_t left = i; left < of.size(); ++left) to_tell_.push_back(of[left].name);
      for (const std::string& each : std::exchange(to_tell_, {})) forget_name(each);
      break;
    }
    works(complained_of_heads_);
    const std::uint64_t number = ++last_number_;
    numbers_.emplace(name, number);
    push_one(reads_, ReadJob(Named{number, of[i]}));  // before a worker can order it
    DiskOutcome found{.kind = DiskOrder::Kind::found, .file = number, .key = heads[i]->key};
    found.bytes = snapshot_file_bytes(heads[i]->tokens.size(), heads[i]->kv_bytes);
    found.tokens = std::move(heads[i]->tokens);
    tell(found);
  }
  if (!damaged.empty()) (void)stores_.index->remove(damaged);
}

void SnapshotExchange::tell(const DiskOutcome& outcome) {
  for (const Deliver& worker : workers_) worker(outcome);
}

// What is to be read is asked for by its number, and the folder says what it is.
void SnapshotExchange::send_one() {
  if (offers_.empty() || clock_.now() < next_send_) return;
  Offer offer = offers_.front();
  offers_.pop_front();
  auto content = contents_.find(offer.file);
  if (content == contents_.end()) {
    const auto head = folder_->head(offer.file, limits_);
    if (!head) return;  // it had to go already
    if (contents_.size() >= kContentsMax) contents_.clear();
    content = contents_.emplace(offer.file, stores_.index->content_of(head->key, head->tokens)).first;
  }
  if (is_there(content->second)) return;
  auto snapshot = folder_->read(offer.file, limits_);
  if (!snapshot) return;
  const auto sent = send(std::move(*snapshot));
  if (sent) return works(complained_of_sends_);
  failed(sent.error(), complained_of_sends_);
  next_send_ = clock_.now() + kSendAgain * stores_.look_every;
  // Behind the others: it may be this one that the store does not take.
  if (++offer.tries < kTries) offers_.push_back(offer);
}

bool SnapshotExchange::is_there(const Checksum& content) const {
  return std::ranges::any_of(there_, [&](const auto& there) { return there.second.content == content; });
}

Result<void> SnapshotExchange::send(LoadedSnapshot snapshot) {
  const auto& [key, tokens, kv_bytes] = snapshot.head;
  const std::uint64_t bytes = snapshot_file_bytes(tokens.size(), kv_bytes);
  if (bytes > std::min(stores_.bytes, kSentMax)) return {};
  if (auto room = make_room(bytes); !room) return room;
  auto sent = stores_.index->write(key, tokens, std::move(snapshot.kv), clock_.unix_seconds());
  if (!sent) return sent.error();
  metrics_.sent.add();
  metrics_.sent_bytes.add(bytes);
  bytes_ += sent->bytes;
  const std::string name = sent->name;
  to_tell_.push_back(name);
  there_.emplace(name, std::move(*sent));
  return {};
}

Result<void> SnapshotExchange::make_room(std::uint64_t bytes) {
  const std::size_t count = there_.size() + (bytes > 0 ? 1 : 0);
  if (bytes_ + bytes <= stores_.bytes && count <= SharedSnapshotStore::kSnapshotsMax) return {};
  std::uint64_t over = bytes_ + bytes > stores_.bytes ? bytes_ + bytes - stores_.bytes : 0;
  over += over > 0 ? stores_.bytes / kSlack : 0;
  std::size_t too_many = 0;
  if (count > SharedSnapshotStore::kSnapshotsMax) too_many = count - SharedSnapshotStore::kSnapshotsMax * 19 / 20;
  std::vector<SharedSnapshot> oldest;
  for (const auto& [name, snapshot] : there_) {
    if (over == 0 && oldest.size() >= too_many) break;
    oldest.push_back(snapshot);
    over -= std::min(over, snapshot.bytes);
  }
  if (auto removed = stores_.index->remove(oldest); !removed) return removed;
  metrics_.removed.add(oldest.size());
  for (const SharedSnapshot& snapshot : oldest) forget_name(snapshot.name);
  return {};
}

void SnapshotExchange::erase_now(Erasure& erasure) {
  std::erase_if(offers_, [&](const Offer& offer) { return offer.tenant.value_or(erasure.tenant) == erasure.tenant; });
  const auto erased = stores_.index->erase(erasure.tenant);
  if (!erased) {
    log_error("shared snapshots could not be erased",
              {{"store", stores_.index->place()}, {"reason", erased.error().message}});
    return erasure.erased(0, false);
  }
  std::vector<std::string> names;
  for (const auto& [name, snapshot] : there_) {
    if (snapshot.tenant == erasure.tenant) names.push_back(name);
  }
  for (const std::string& name : names) forget_name(name);
  erasure.erased(*erased, true);
}

void SnapshotExchange::remove_damaged(std::uint64_t file) {
  const auto named = std::ranges::find_if(numbers_, [file](const auto& each) { return each.second == file; });
  if (named == numbers_.end()) return;
  const std::string name = named->first;
  const SharedSnapshot snapshot = there_.at(name);
  log_info("a shared snapshot that cannot be read is removed", {{"object", name}});
  forget_name(name);
  if (auto removed = stores_.index->remove({&snapshot, 1}); !removed) failed(removed.error(), complained_of_sends_);
}

void SnapshotExchange::run_reads() {
  std::map<std::uint64_t, SharedSnapshot> names;
  std::vector<ReadJob> jobs;
  for (;;) {
    reads_.drain(jobs, Wait::yes);
    if (jobs.empty()) return;  // closed
    for (ReadJob& job : jobs) {
      if (const auto* read = std::get_if<Read>(&job)) {
        read_one(names, *read);
        continue;
      }
      auto& named = std::get<Named>(job);
      if (named.snapshot) {
        names.insert_or_assign(named.file, std::move(*named.snapshot));
      } else {
        names.erase(named.file);
      }
    }
  }
}

void SnapshotExchange::read_one(const std::map<std::uint64_t, SharedSnapshot>& names, const Read& read) {
  DiskOutcome outcome{.kind = DiskOrder::Kind::read, .file = read.file};
  const TimePoint began = clock_.now();
  const auto named = names.find(read.file);
  auto loaded = named == names.end() ? Result<LoadedSnapshot>(Error{ErrorCode::not_found, "it is gone", ""})
                                     : stores_.reads->read(named->second, limits_);
  outcome.took = clock_.now() - began;
  if (loaded) {
    metrics_.read.add();
    metrics_.read_bytes.add(loaded->head.kv_bytes);
    metrics_.read_seconds.observe(to_seconds(outcome.took));
    outcome.kv = std::move(loaded->kv);
    outcome.key = loaded->head.key;
    outcome.tokens = std::move(loaded->head.tokens);
  } else {
    metrics_.not_read.add();
    const Error& error = loaded.error();
    const bool is_known = named != names.end();
    const bool missing = error.code == ErrorCode::not_found;  // another node has made room, or this one's news is old
    if (!missing)
      log_warning("a shared snapshot is refused; its tokens are computed again",
                  {{"object", is_known ? named->second.name : std::string()},
                   {"code", name(error.code)},
                   {"reason", error.message}});
    outcome.error = is_final(error) ? error : Error{ErrorCode::unavailable, error.message, ""};
    // What has a head and nothing else keeps others from sending it.
    if (is_damaged(error) || (missing && is_known)) push_one(inbox_, Job(Damaged{read.file}));
  }
  workers_[read.worker](std::move(outcome));
}

}  // namespace chasqui
