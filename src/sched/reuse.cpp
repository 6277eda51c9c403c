#include "sched/reuse.h"

#include <algorithm>
#include <utility>

#include "core/lasting_tenant.h"
#include "sched/moving_average.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// Until the first restore was timed: slow memory.
constexpr double kCopySecondsPerByte = 1 / 2e9;

const Sequence* find_running(const RunningSequences& running, RequestId id) {
  const auto found = std::ranges::find_if(running, [id](const auto& sequence) { return sequence->id() == id; });
  return found != running.end() ? found->get() : nullptr;
}

// That a restore of the first `keep` tokens copies.
std::size_t bytes_of(const KvSnapshot& snapshot, TokenCount keep) {
  if (snapshot.block_tokens() == 0) return snapshot.size();
  return snapshot.size() / static_cast<std::size_t>(snapshot.tokens()) * static_cast<std::size_t>(keep);
}

PrefixCache::Limits cache_limits(const ReuseConfig& config) {
  PrefixCache::Limits limits = config.cache;
  limits.hand_over = config.disk.has_value();
  limits.holdings = config.holdings;
  return limits;
}

}  // namespace

Reuse::Reuse(const ReuseConfig& config)
    : config_(config),
      cache_(cache_limits(config)),
      slots_(config.holdings),
      copy_seconds_per_byte_(kCopySecondsPerByte),
      bytes_per_token_(static_cast<double>(config.kv_token_bytes)) {
  if (config_.disk) disk_.emplace(*config_.disk, config_.cache.cut_anywhere, cache_);
}

PrefixKey Reuse::key_of(const Request& request) const {
  return {config_.shared_by_tenants ? 0 : request.tenant.id, id_of(request.adapters.get())};
}

std::optional<std::uint64_t> Reuse::lasting_name(const Tenant& tenant) const {
  return lasting_tenant(tenant, config_.shared_by_tenants);
}

void Reuse::name_on_disk(const Request& request) {
  if (!disk_) return;
  if (const auto lasting = lasting_name(request.tenant)) disk_->name(key_of(request).tenant, *lasting);
}

std::size_t Reuse::forget_tenant(const Tenant& tenant, std::uint64_t ticket) {
  const std::uint32_t id = config_.shared_by_tenants ? 0 : tenant.id;
  std::size_t copies = std::erase_if(left_, [id](const Save& save) { return save.key.tenant == id; });
  for (const CachedSlots::Kept& kept : slots_.all()) {
    if (kept.key.tenant == id && kept.copying) queue_.remove(kept.slot);
  }
  copies += slots_.forget(id, given_up_);
  copies += cache_.erase_tenant(id);
  notes_.forget(tenant.id);
  if (const auto lasting = lasting_name(tenant); disk_ && lasting) copies += disk_->forget(*lasting, ticket);
  return copies;
}

// Valid until the next call.
std::span<const Token> Reuse::tokens_of(const Sequence& sequence) {
  if (sequence.generated() == 0) return sequence.request().prompt;
  sequence.copy_tokens(sequence.length(), scratch_);
  return scratch_;
}

bool Reuse::waits(const Sequence& waiting, const RunningSequences& running) {
  const auto found = awaiting_.find(waiting.id());
  if (found == awaiting_.end()) return false;
  if (found->second.file != 0) {
    if (disk_->reading(found->second.file)) return true;
    found->second = {};
    return false;
  }
  const Sequence* source = find_running(running, found->second.source);
  const bool coming = source != nullptr && source->computed() < found->second.length;
  if (coming || wanted_.contains(found->second.source)) return true;
  found->second = {};
  return false;
}

bool Reuse::should_defer(const Sequence& waiting, const RunningSequences& running, double row_seconds) {
  if (!uses_cache(waiting.request()) || !config_.waits) return false;
  const std::span<const Token> tokens = tokens_of(waiting);
  const PrefixKey key = key_of(waiting.request());
  const TokenCount known = std::max(cache_.match(key, tokens, waiting.length() - 1).length,
                                    slots_.match(key, tokens, waiting.length() - 1).second);
  return waits_for_source(waiting, tokens, known, running, row_seconds) ||
         waits_for_file(waiting, tokens, known, row_seconds);
}

bool Reuse::waits_for_source(const Sequence& waiting, std::span<const Token> tokens, TokenCount known,
                             const RunningSequences& running, double row_seconds) {
  const PrefixKey key = key_of(waiting.request());
  const PrefixCache::PendingMatch pending = cache_.match_pending(key, tokens, waiting.length() - 1);
  const TokenCount gain = pending.length - known;
  if (gain < kWorthWaiting) return false;
  const Sequence* source = find_running(running, pending.request);
  CHECK(source != nullptr, "a prefix is announced that no sequence computes");
  // Interactive work does not wait for what background work gets round to.
  if (source->request().service_class > waiting.request().service_class) return false;
  // Where KV cannot be cut, who has gone on has lost what it held at the end of its prompt.
  if (!config_.cache.cut_anywhere && source->computed() > pending.length) return false;
  if (!fits(std::max(source->computed(), pending.length))) return false;
  if (!quicker_to_copy(*source, gain, row_seconds)) return false;
  if (source->computed() >= pending.length) wanted_.insert(pending.request);
  if (awaiting_.insert_or_assign(waiting.id(), Awaited{.source = pending.request, .length = pending.length}).second) {
    ++waits_begun_;
  }
  return true;
}

bool Reuse::waits_for_file(const Sequence& waiting, std::span<const Token> tokens, TokenCount known,
                           double row_seconds) {
  if (!disk_ || has_read_.contains(waiting.id())) return false;
  name_on_disk(waiting.request());
  // To encode a picture or a sound takes longer than to read what was computed of it.
  if (unit_from(waiting.request().media, known) != nullptr) row_seconds = 0;
  const DiskTier::Wait wait = disk_->read(key_of(waiting.request()), tokens, waiting.length() - 1,
                                          {known, row_seconds, copy_seconds_per_byte_});
  if (wait.file == 0) return false;
  awaiting_[waiting.id()] = {.file = wait.file};
  if (wait.own) has_read_.insert(waiting.id());
  return true;
}

// Whether a snapshot of so many tokens is not larger than the whole cache, as far as is known.
bool Reuse::fits(TokenCount tokens) const {
  if (!config_.cache.cut_anywhere) return tokens < too_long_;  // a state that does not grow with each token
  return bytes_per_token_ * tokens <= static_cast<double>(config_.cache.bytes);
}

// Out of the source's slot and into the other one: all that it holds, for the sake of `gain` tokens.
bool Reuse::quicker_to_copy(const Sequence& source, TokenCount gain, double row_seconds) const {
  if (!config_.cache.cut_anywhere || row_seconds <= 0) return true;
  return 2 * copy_seconds_per_byte_ * bytes_per_token_ * source.computed() < gain * row_seconds;
}

// The longest prefix in the cache, if it is quicker to bring back than to compute.
Reuse::Prefix Reuse::find(const Sequence& waiting, double row_seconds) {
  PrefixCache::Match match = cache_.match(key_of(waiting.request()), tokens_of(waiting), waiting.length() - 1);
  match.length = waiting.request().usable(match.length);
  if (match.length == 0) return {};
  const double copy = copy_seconds_per_byte_ * static_cast<double>(bytes_of(*match.snapshot, match.length));
  if (row_seconds <= 0 || copy <= match.length * row_seconds) return {match};
  return {.slower = true};
}

double Reuse::swap_seconds(const Sequence& running, double row_seconds) const {
  const double again = running.computed() * row_seconds;
  if (!uses_cache(running.request()) || !fits(running.computed())) return again;
  return 2 * copy_seconds_per_byte_ * bytes_per_token_ * running.computed() + (1 - copies_last_) * again;
}

void Reuse::started(const Sequence& sequence, const Prefix& prefix, TimePoint now) {
  const PrefixCache::Match& match = prefix.match;
  awaiting_.erase(sequence.id());
  has_read_.erase(sequence.id());
  if (!uses_cache(sequence.request())) return;
  // What is too slow is not tried, and so would be too slow for ever: each request that starts without it takes a
  // little of the doubt away.
  if (prefix.slower) copy_seconds_per_byte_ *= kFading;
  if (sequence.lost_rows() > 0) {
    const double kept = std::min(1.0, static_cast<double>(match.length) / sequence.lost_rows());
    copies_last_ += kQuickWeight * (kept - copies_last_);
  }
  cache_.touch(match, now);
  if (disk_) {
    name_on_disk(sequence.request());
    const auto length = static_cast<std::size_t>(match.length);
    disk_->used(key_of(sequence.request()), tokens_of(sequence).first(length));
  }
  // Where KV cannot be cut, others can begin with what it will hold at its next checkpoint.
  std::span<const Token> prompt = sequence.request().prompt;
  const std::vector<TokenCount>& stops = sequence.request().checkpoints;
  const auto next = std::upper_bound(stops.begin(), stops.end(), match.length);
  if (!config_.cache.cut_anywhere && next != stops.end()) prompt = prompt.first(static_cast<std::size_t>(*next));
  // Of one that has lost its slot, what was found may reach into its answer.
  if (!prefix.moved.gaps.empty()) {
    prompt = prompt.first(std::min(prompt.size(), static_cast<std::size_t>(prefix.moved.clean)));
  }
  // Of one that was shifted before it lost its slot, what is behind those that are kept is not the prompt's.
  const auto all = static_cast<TokenCount>(sequence.request().prompt.size()) + sequence.generated();
  if (sequence.length() < all) {
    prompt = prompt.first(std::min(prompt.size(), static_cast<std::size_t>(sequence.request().keep)));
  }
  // A deterministic one leaves whole chunks.
  prompt = prompt.first(static_cast<std::size_t>(sequence.request().usable(static_cast<TokenCount>(prompt.size()))));
  if (prompt.empty()) return;
  cache_.announce(key_of(sequence.request()), prompt, sequence.id());
  if (prefix.in_place) cache_.computed(sequence.id(), match.length);
}

bool Reuse::leaves(const Sequence& sequence) {
  note_slot(sequence);
  const bool stays = keeps_slots() && uses_cache(sequence.request()) && sequence.computed() >= kWorthACopy;
  if (stays) {
    keep_slot(sequence);
  } else if (worth_saving(sequence)) {
    left_.push_back(save_of(sequence));
  }
  forget(sequence.id());
  return stays;
}

void Reuse::leaves(const Sequence& sequence, Batch& batch) {
  note_slot(sequence);
  if (worth_saving(sequence)) give(save_of(sequence), batch);
  forget(sequence.id());
}

void Reuse::forget(RequestId request) {
  cache_.withdraw(request);
  wanted_.erase(request);
  awaiting_.erase(request);
  has_read_.erase(request);
}

void Reuse::shifted(const Sequence& sequence) {
  wanted_.erase(sequence.id());
  expect_nothing_of(sequence.id());
}

bool Reuse::worth_saving(const Sequence& sequence) {
  if (!uses_cache(sequence.request()) || sequence.computed() < kWorthACopy) return false;
  if (!fits(sequence.computed())) return false;
  const auto tokens = tokens_of(sequence).first(static_cast<std::size_t>(sequence.computed()));
  const PrefixKey key = key_of(sequence.request());
  return sequence.serves_others() - cache_.match(key, tokens, sequence.computed()).length >= kWorthACopy;
}

Reuse::Save Reuse::save_of(const Sequence& sequence) const {
  Save save{sequence.id(), key_of(sequence.request()), sequence.slot(), {}, nullptr, 0, sequence.request().returns};
  sequence.copy_tokens_to_keep(save.tokens);
  if (config_.kv_block > 0) save.tokens.resize(static_cast<std::size_t>(sequence.serves_others()));
  return save;
}

void Reuse::checkpoint_computed(const Sequence& sequence) {
  if (config_.cache.cut_anywhere) cache_.computed(sequence.id(), sequence.computed());
  if (!config_.cache.cut_anywhere && worth_saving(sequence)) wanted_.insert(sequence.id());
}

void Reuse::step_computed(const RunningSequences& running) {
  if (!config_.cache.cut_anywhere) return;  // checkpoint_computed() has seen to it
  for (auto& [waiting, awaited] : awaiting_) {
    if (awaited.source == RequestId{}) continue;  // of thousands that wait for nothing any more
    const Sequence* source = find_running(running, awaited.source);
    if (source == nullptr || source->computed() < awaited.length) continue;
    if (fits(source->computed())) wanted_.insert(awaited.source);
    awaited = {};
  }
}

// Blocks that the cache has are not copied again. The lease keeps them until commit().
void Reuse::share_begin(Save& save) {
  const TokenCount block = config_.kv_block;
  const auto length = static_cast<TokenCount>(save.tokens.size());
  if (block == 0 || length <= block) return;
  PrefixCache::Match match = cache_.match(save.key, save.tokens, length - 1);
  if (match.length < block || match.snapshot->block_tokens() != block) return;
  save.from = match.length / block * block;
  save.begin = std::move(match.snapshot);
}

void Reuse::give(Save save, Batch& batch) {
  share_begin(save);
  batch.saves.push_back({save.slot, static_cast<TokenCount>(save.tokens.size()), save.from});
  saving_.push_back(std::move(save));
}

void Reuse::take_saves(const RunningSequences& running, Batch& batch) {
  for (Save& save : left_) give(std::move(save), batch);
  left_.clear();
  for (const RequestId id : wanted_) {
    const Sequence* sequence = find_running(running, id);
    CHECK(sequence != nullptr, "a copy is wanted of who does not run");
    Save save = save_of(*sequence);
    if (save.tokens.empty()) {
      expect_nothing_of(id);  // what it had was lost to a shift
    } else {
      give(std::move(save), batch);
    }
  }
  wanted_.clear();
}

void Reuse::commit(const Batch& batch, const BatchResult& result, double row_seconds, TimePoint now) {
  const std::size_t whole = saving_.size();
  CHECK(result.snapshots.size() == batch.saves.size() && batch.saves.size() == whole + queue_.pieces());
  for (const KvSnapshotPtr& snapshot : result.snapshots) {
    if (snapshot) learn_sizes(*snapshot);
  }
  for (std::size_t i = 0; i < whole; ++i) {
    KvSnapshotPtr snapshot = result.snapshots[i];
    if (snapshot && saving_[i].from > 0) snapshot = KvSnapshot::joined(*saving_[i].begin, saving_[i].from, *snapshot);
    saving_[i].begin.reset();
    keep(saving_[i], std::move(snapshot), row_seconds, now);
  }
  saving_.clear();
  for (std::size_t i = whole; i < result.snapshots.size(); ++i) {
    if (auto done = queue_.copied(result.snapshots[i])) keep_copied(*done, row_seconds, now);
  }
  learn_saving(result);
  give_up_refused(batch, result);
  if (disk_) disk_->take_evicted();
  learn_restoring(batch, result);
}

// All of a cached slot: it can be given away now.
void Reuse::keep_copied(Save& whole, double row_seconds, TimePoint now) {
  CachedSlots::Kept& slot = *slots_.find(whole.slot);
  slot.copying = false;
  slot.safe = true;  // or it cannot be copied, and will not be
  slots_.stats.copied_out += whole.begin ? 1 : 0;
  const bool copied = whole.begin != nullptr;
  const bool kept = keep(whole, std::exchange(whole.begin, nullptr), row_seconds, now);
  slot.no_room = copied && !kept && disk_ && fits(whole.length());
}

bool Reuse::keep(const Save& save, KvSnapshotPtr snapshot, double row_seconds, TimePoint now) {
  const std::chrono::duration<double> cost(save.worth() * row_seconds);
  const bool kept =
      snapshot && cache_.insert(save.key, save.tokens, std::move(snapshot), std::chrono::duration_cast<Duration>(cost),
                                now) != PrefixCache::Insertion::refused;
  // Sequences that wait for it would wait for ever; and where KV cannot be cut, what comes is of no use to them.
  if (!kept || !config_.cache.cut_anywhere) expect_nothing_of(save.request);
  return kept;
}

// What the model refused it will refuse the next time, and the next request would try it again.
void Reuse::give_up_refused(const Batch& batch, const BatchResult& result) {
  for (const std::size_t i : result.not_restored) {
    if (!batch.restores[i].snapshot) continue;
    const std::optional<PrefixCache::Kept> gone = cache_.give_up(*batch.restores[i].snapshot);
    if (gone && disk_) disk_->refused(gone->key, gone->tokens);
  }
}

void Reuse::expect_nothing_of(RequestId source) {
  cache_.withdraw(source);
  for (auto& [waiting, awaited] : awaiting_) {
    if (awaited.source == source) awaited = {};
  }
}

void Reuse::learn_sizes(const KvSnapshot& snapshot) {
  bytes_per_token_ = static_cast<double>(snapshot.size()) / snapshot.tokens();
  if (snapshot.resident_bytes() > config_.cache.bytes) too_long_ = std::min(too_long_, snapshot.tokens());
}

void Reuse::learn_saving(const BatchResult& result) {
  std::size_t bytes = 0;
  for (const KvSnapshotPtr& snapshot : result.snapshots) bytes += snapshot ? snapshot->size() : 0;
  if (bytes == 0 || result.saving <= Duration::zero()) return;
  follow_time(to_seconds(result.saving) / static_cast<double>(bytes), save_seconds_per_byte_);
}

// Copies of few tokens say little about what a byte takes, since they take what any copy does: the long ones would seem
// too slow to be tried.
void Reuse::learn_restoring(const Batch& batch, const BatchResult& result) {
  std::size_t bytes = 0;
  TokenCount longest = 0;
  for (const SlotRestore& restore : batch.restores) {
    const TokenCount tokens = restore.end() - restore.from;
    longest = std::max(longest, restore.keep);
    bytes += restore.snapshot ? bytes_of(*restore.snapshot, tokens)
                              : static_cast<std::size_t>(bytes_per_token_) * static_cast<std::size_t>(tokens);
  }
  if (bytes == 0 || longest < kTelling) return;
  const bool first = !std::exchange(knows_restores_, true);
  if (result.restoring <= Duration::zero()) return;
  const double measured = to_seconds(result.restoring) / static_cast<double>(bytes);
  first ? void(copy_seconds_per_byte_ = measured) : follow_time(measured, copy_seconds_per_byte_);
}

}  // namespace chasqui
