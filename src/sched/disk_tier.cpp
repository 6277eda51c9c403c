#include "sched/disk_tier.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "sched/moving_average.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// Until the first reads were timed: a disk in the network, and a store that is asked over HTTP.
constexpr double kReadSecondsPerByte = 1 / 200e6;
constexpr double kSharedSecondsPerByte = 1 / 100e6;
constexpr double kReadSeconds = 0.001;
constexpr double kSharedSeconds = 0.02;
// Reads at a time, so that the disk is never without one, and a more urgent request need not wait for many; the same
// number of what nodes share. Each has room reserved in the cache.
constexpr std::size_t kReadsMax = 2;
// When a read is late.
constexpr double kLateFactor = 10;
constexpr Duration kLateAfter = seconds(5);
constexpr Duration kSharedLateAfter = seconds(2);
// After a read that the store has not answered.
constexpr Duration kSharedRest = seconds(30);
// Entries whose tokens a step may compare with those on disk, to find one to write ahead.
constexpr int kAheadLookedAt = 4;

SnapshotStore::Limits store_limits(const DiskLimits& limits, bool cut_anywhere) {
  SnapshotStore::Limits out;
  out.bytes = limits.bytes;
  out.cut_anywhere = cut_anywhere;
  out.worker = limits.worker;
  out.workers = limits.workers;
  out.holdings = limits.holdings;
  return out;
}

}  // namespace

DiskTier::DiskTier(const DiskLimits& limits, bool cut_anywhere, PrefixCache& cache)
    : limits_(limits),
      cache_(cache),
      store_(store_limits(limits, cut_anywhere)),
      paces_{Pace{kReadSeconds, kReadSecondsPerByte, kLateAfter},
             Pace{kSharedSeconds, kSharedSecondsPerByte, kSharedLateAfter}} {}

// Of keys whose tenant has one.
std::optional<LastingKey> DiskTier::lasting(PrefixKey key) const {
  const auto name = names_.find(key.tenant);
  if (name == names_.end()) return std::nullopt;
  return LastingKey{name->second, key.adapters};
}

// One that is begun now. They are read one after the other.
TimePoint DiskTier::due_in(double expected, std::uint64_t file) {
  for (const auto& [other, reading] : reading_) {
    if (is_shared_file(other) == is_shared_file(file)) expected += reading.expected;
  }
  return now_ + std::max(pace_of(file).late_after, from_seconds(kLateFactor * expected));
}

void DiskTier::look_at_reads(TimePoint now) {
  now_ = now;
  for (auto& [file, reading] : reading_) {
    if (reading.late || now < reading.due) continue;
    reading.late = true;
    ++late_;
  }
}

// Nothing: computing is as quick, or a read of the same kind is late.
std::optional<DiskTier::Candidate> DiskTier::candidate(const SnapshotStore::Match& match, const Worth& worth) {
  if (match.length < worth.known + kWorthWaiting) return std::nullopt;
  const bool shared = is_shared_file(match.file);
  if (shared && now_ < shared_from_) return std::nullopt;
  const bool hangs = std::ranges::any_of(
      reading_, [shared](const auto& each) { return each.second.late && is_shared_file(each.first) == shared; });
  if (hangs && !reading(match.file)) return std::nullopt;
  const auto saved = static_cast<double>(match.length - worth.known);
  if (worth.row_seconds <= 0) return Candidate{match, saved};
  const Pace& pace = pace_of(match.file);
  const double per_byte = pace.seconds_per_byte + worth.restore_seconds_per_byte;
  const double gain = worth.row_seconds * saved - pace.seconds - per_byte * static_cast<double>(match.kv_bytes);
  if (gain < 0) return std::nullopt;
  return Candidate{match, gain};
}

DiskTier::Wait DiskTier::read(PrefixKey key, std::span<const Token> tokens, TokenCount most, const Worth& worth) {
  const auto name = lasting(key);
  if (!name) return {};
  std::optional<Candidate> best = candidate(store_.match(*name, tokens, most), worth);
  const std::optional<Candidate> shared = candidate(store_.match_shared(*name, tokens, most), worth);
  if (shared && (!best || shared->gain > best->gain)) best = shared;
  if (!best) return {};
  const SnapshotStore::Match& match = best->match;
  if (reading(match.file)) return {match.file, true};
  const bool is_shared = is_shared_file(match.file);
  const auto alike = [is_shared](const auto& each) { return is_shared_file(each.first) == is_shared; };
  if (std::cmp_greater_equal(std::ranges::count_if(reading_, alike), kReadsMax)) {
    return {std::ranges::find_if(reading_, alike)->first, false};
  }
  const auto bytes = static_cast<std::size_t>(match.kv_bytes);
  if (!cache_.reserve(bytes)) return {};
  take_evicted();
  store_.hold(match.file);
  store_.touch(match.file);
  const Pace& pace = pace_of(match.file);
  const double expected = pace.seconds + pace.seconds_per_byte * static_cast<double>(bytes);
  reading_.emplace(match.file, Reading{key, *name, bytes, expected, due_in(expected, match.file)});
  orders_.push_back({.kind = DiskOrder::Kind::read, .file = match.file});
  return {match.file, true};
}

void DiskTier::used(PrefixKey key, std::span<const Token> tokens) {
  const auto name = lasting(key);
  if (!name) return;
  const SnapshotStore::Match match = store_.match(*name, tokens, static_cast<TokenCount>(tokens.size()));
  if (match.length < kWorthWaiting || std::cmp_less(match.length, tokens.size())) return;
  store_.touch(match.file);
  orders_.push_back({.kind = DiskOrder::Kind::touch, .file = match.file});
}

void DiskTier::refused(PrefixKey key, std::span<const Token> tokens) {
  const auto name = lasting(key);
  if (!name) return;
  drop_waiting(
      [&](const Waiting& waiting) { return waiting.key == *name && std::ranges::equal(waiting.tokens, tokens); });
  if (written_ != 0 && store_.writes(written_, *name, tokens)) {
    written_in_vain_ = true;
    ++refused_;
  }
  const auto length = static_cast<TokenCount>(tokens.size());
  for (const auto& match : {store_.match(*name, tokens, length), store_.match_shared(*name, tokens, length)}) {
    if (match.length < length || match.tokens != match.length) continue;
    if (reading_.contains(match.file)) continue;  // what comes of it will be tried, and end here again
    ++refused_;
    store_.forget(match.file);
  }
}

std::size_t DiskTier::forget(std::uint64_t tenant, std::uint64_t ticket) {
  take_evicted();  // what has left memory is a copy like any other
  drop_waiting([&](const Waiting& waiting) { return waiting.key.tenant == tenant; });
  const std::vector<std::uint64_t> files = store_.files_of(tenant);
  Erasure erasure;
  for (const std::uint64_t file : files) {
    if (file == written_) {
      written_in_vain_ = true;
      erasure.files.push_back(file);
    } else if (const auto reading = reading_.find(file); reading != reading_.end()) {
      reading->second.in_vain = true;
      if (!is_shared_file(file)) erasure.files.push_back(file);  // of those, nothing is on disk
    } else {
      store_.forget(file);
    }
  }
  if (ticket != 0) erasures_.emplace(ticket, std::move(erasure));
  return static_cast<std::size_t>(std::ranges::count_if(files, [](auto file) { return !is_shared_file(file); }));
}

// One that could not go before.
void DiskTier::forget_file(std::uint64_t file) {
  store_.forget(file);
  for (auto& [ticket, erasure] : erasures_) std::erase(erasure.files, file);
}

void DiskTier::drop_waiting(const std::function<bool(const Waiting&)>& which) {
  std::vector<KvSnapshotPtr> dropped;
  std::erase_if(queue_, [&](Waiting& waiting) {
    if (!which(waiting)) return false;
    queue_owned_ -= waiting.owned;
    dropped.push_back(std::move(waiting.kv));
    return true;
  });
  for (KvSnapshotPtr& kv : dropped) cache_.discard(std::move(kv));
}

// There is a name for it, and it is not there.
bool DiskTier::fits_below(const PrefixCache::Kept& kept) const {
  const auto name = lasting(kept.key);
  return name && std::cmp_greater_equal(kept.tokens.size(), kWorthWaiting) && !store_.covers(*name, kept.tokens);
}

void DiskTier::enqueue(PrefixCache::Kept kept, std::size_t owned) {
  queue_owned_ += owned;
  queue_.push_back({*lasting(kept.key), std::move(kept.tokens), std::move(kept.snapshot), owned});
}

void DiskTier::take_evicted() {
  cache_.take_evicted(evicted_);
  for (PrefixCache::Kept& kept : evicted_) {
    if (!fits_below(kept)) {
      cache_.discard(std::move(kept.snapshot));
      continue;
    }
    const std::size_t bytes = kept.snapshot->resident_bytes();
    enqueue(std::move(kept), bytes);
  }
  evicted_.clear();
  while (queue_owned_ > limits_.queue_bytes) {
    const auto oldest = std::ranges::find_if(queue_, [](const Waiting& waiting) { return waiting.owned > 0; });
    if (oldest == queue_.end()) return;  // what is left is being written
    queue_owned_ -= oldest->owned;
    KvSnapshotPtr dropped = std::move(oldest->kv);
    queue_.erase(oldest);
    cache_.discard(std::move(dropped));
    ++dropped_;
  }
}

void DiskTier::write_ahead() {
  for (int looked_at = 0; looked_at < kAheadLookedAt && !writing(); ++looked_at) {
    std::optional<PrefixCache::Kept> kept = cache_.next_to_leave(limits_.queue_bytes);
    if (!kept) return;
    if (fits_below(*kept)) enqueue(std::move(*kept), 0);
  }
}

void DiskTier::rest() {
  while (!writing() && !flushed_) {
    std::optional<PrefixCache::Kept> kept = cache_.next_unseen();
    if (!kept) return;
    if (!fits_below(*kept)) continue;
    const auto length = static_cast<TokenCount>(kept->tokens.size());
    const TokenCount there = store_.match(*lasting(kept->key), kept->tokens, length).length;
    if (std::int64_t{4} * there < std::int64_t{3} * length) enqueue(std::move(*kept), 0);
  }
}

void DiskTier::flush() {
  flushed_ = true;
  std::uint64_t bytes = 0;
  for (const EntryId id : cache_.by_value()) {
    PrefixCache::Kept kept = cache_.kept(id);
    if (!fits_below(kept)) continue;
    bytes += snapshot_file_bytes(kept.tokens.size(), kept.snapshot->size());
    if (bytes > limits_.bytes) return;  // what is less valuable would drive out what is more
    enqueue(std::move(kept), 0);
  }
}

void DiskTier::take_orders(std::vector<DiskOrder>& orders) {
  std::vector<DiskOrder> writes;
  if (limits_.ahead && !flushed_) write_ahead();
  if (written_ == 0 && !queue_.empty()) start_write(writes);
  store_.take_removals(removals_);
  for (const std::uint64_t file : removals_) orders.push_back({.kind = DiskOrder::Kind::remove, .file = file});
  removals_.clear();
  for (auto& [ticket, erasure] : erasures_) {
    if (!erasure.files.empty() || std::exchange(erasure.ordered, true)) continue;
    orders.push_back({.kind = DiskOrder::Kind::sync, .file = ticket});
  }
  std::ranges::move(orders_, std::back_inserter(orders));
  orders_.clear();
  std::ranges::move(writes, std::back_inserter(orders));
}

void DiskTier::start_write(std::vector<DiskOrder>& writes) {
  while (!queue_.empty()) {
    Waiting next = std::move(queue_.front());
    queue_.pop_front();
    const auto file = store_.begin_write(next.key, next.tokens, next.kv->size());
    if (!file) {
      queue_owned_ -= next.owned;
      continue;
    }
    written_ = *file;
    written_owned_ = next.owned;
    writes.push_back({.kind = DiskOrder::Kind::write,
                      .file = *file,
                      .key = next.key,
                      .tokens = std::move(next.tokens),
                      .kv = std::move(next.kv)});
    return;
  }
}

void DiskTier::done(DiskOutcome outcome, double row_seconds, TimePoint now) {
  if (outcome.kind == DiskOrder::Kind::read) {
    done_reading(outcome, row_seconds, now);
  } else if (outcome.kind == DiskOrder::Kind::write) {
    done_writing(outcome);
    cache_.discard(std::move(outcome.kv));
  } else if (outcome.kind == DiskOrder::Kind::sync) {
    erasures_.erase(outcome.file);
  } else if (outcome.kind == DiskOrder::Kind::found) {
    store_.found({outcome.file, outcome.bytes, true, outcome.key, std::move(outcome.tokens)});
  } else if (outcome.kind == DiskOrder::Kind::gone) {
    // What is being read says so itself.
    if (store_.contains(outcome.file) && !reading_.contains(outcome.file)) store_.forget(outcome.file);
  }
}

void DiskTier::done_reading(DiskOutcome& outcome, double row_seconds, TimePoint now) {
  const auto found = reading_.find(outcome.file);
  CHECK(found != reading_.end(), "a file was read that was not asked for");
  const Reading reading = found->second;
  reading_.erase(found);
  cache_.unreserve(reading.reserved);
  store_.release(outcome.file);
  const bool good = !reading.in_vain && !outcome.error && outcome.kv && outcome.key == reading.lasting &&
                    outcome.kv->size() <= reading.reserved;
  if (is_shared_file(outcome.file) && outcome.error && outcome.error->code == ErrorCode::unavailable) {
    shared_from_ = now + kSharedRest;
    if (!reading.in_vain) return;
  }
  if (!good) return forget_file(outcome.file);
  // What hung says nothing of the next read, and a disk that seems too slow is not asked again.
  if (!reading.late) {
    Pace& pace = pace_of(outcome.file);
    const double bytes = static_cast<double>(outcome.kv->size());
    const double measured = std::max(0.0, to_seconds(outcome.took) - pace.seconds) / std::max(1.0, bytes);
    pace.seconds_per_byte += kQuickWeight * (measured - pace.seconds_per_byte);
  }
  const std::chrono::duration<double> cost(static_cast<double>(outcome.tokens.size()) * row_seconds);
  cache_.insert(reading.key, outcome.tokens, std::move(outcome.kv), std::chrono::duration_cast<Duration>(cost), now);
  take_evicted();
}

void DiskTier::done_writing(const DiskOutcome& outcome) {
  CHECK(written_ == outcome.file, "a file was written that was not asked for");
  queue_owned_ -= std::exchange(written_owned_, 0);
  written_ = 0;
  if (outcome.error || std::exchange(written_in_vain_, false)) {
    written_in_vain_ = false;
    forget_file(outcome.file);
  } else {
    store_.written(outcome.file);
  }
}

DiskTier::Stats DiskTier::stats() const {
  Stats stats;
  stats.store = store_.stats();
  stats.queue = queue_.size() + (written_ != 0 ? 1 : 0);
  stats.queue_bytes = queue_owned_;
  stats.dropped = dropped_;
  stats.refused = refused_;
  stats.late = late_;
  return stats;
}

bool DiskTier::consistent() const {
  std::size_t owned = written_owned_;
  for (const Waiting& waiting : queue_) owned += waiting.owned;
  for (const auto& [file, reading] : reading_) {
    if (!store_.contains(file)) return false;
  }
  return owned == queue_owned_ && queue_owned_ <= std::max(limits_.queue_bytes, written_owned_) && store_.consistent();
}

}  // namespace chasqui
