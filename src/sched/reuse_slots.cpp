// The part of Reuse that knows what is in slots whose sequences have left: who goes on with it, when it is copied out,
// and what clients call it who save slots by their numbers.
#include <algorithm>
#include <utility>

#include "sched/reuse.h"
#include "sched/scheduler_tap.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// For texts that have moved, by one request: about a millisecond.
constexpr std::size_t kTokensCompared = 1 << 20;

}  // namespace

void Reuse::keep_slot(const Sequence& sequence) {
  const Request& request = sequence.request();
  CachedSlots::Kept kept{sequence.id(), key_of(request), sequence.slot(), {}};
  sequence.copy_tokens_to_keep(kept.tokens);
  kept.prompt = static_cast<TokenCount>(request.prompt.size());
  kept.used = sequence.last_rows_at();
  kept.returns = request.returns;
  kept.safe = !worth_saving(sequence);
  slots_.add(std::move(kept));
}

// A copy costs the other one nothing. To go on in place costs it what it had beyond the common prefix: nothing, where
// that is in the prefix cache as well, or where a request goes on with its answer, or asks for another one. Where no
// other slot can be had, that is worth a copy out of the slot first, unless it is computed again as quickly.
Reuse::Prefix Reuse::choose(const Sequence& waiting, double row_seconds, bool slot_free, TimePoint now) {
  if (!uses_cache(waiting.request())) return {};
  Prefix prefix = choose_as_it_stands(waiting, row_seconds, slot_free, now);
  if (waiting.request().chunk == 0) return prefix;
  Prefix moved = find_moved(waiting);
  return moved.match.length >= prefix.match.length + kWorthACopy ? moved : prefix;
}

// In the slot that has most of it. What is there otherwise is lost: it is to be little, or in the prefix cache.
Reuse::Prefix Reuse::find_moved(const Sequence& waiting) {
  Prefix best;
  const auto tokens = tokens_of(waiting).first(static_cast<std::size_t>(waiting.length() - 1));
  std::size_t budget = kTokensCompared;
  for (const CachedSlots::Kept& kept : slots_.all()) {
    if (kept.key != key_of(waiting.request()) || kept.pinned()) continue;
    MovedText moved = find_moved_text(kept.tokens, tokens, waiting.request().chunk, budget);
    if (moved.gaps.empty() || moved.length <= best.match.length) continue;
    if (!kept.safe && 2 * moved.length < kept.length()) continue;
    best.match.length = moved.length;
    best.slot = kept.slot;
    best.in_place = true;
    best.moved = std::move(moved);
  }
  if (config_.tap != nullptr) {
    config_.tap->found_moved(waiting, {best.slot, best.moved});
    best.match.length = best.moved.length;
    best.in_place = !best.moved.gaps.empty();
  }
  return best;
}

Reuse::Prefix Reuse::choose_as_it_stands(const Sequence& waiting, double row_seconds, bool slot_free, TimePoint now) {
  Prefix prefix = find(waiting, row_seconds);
  const auto [kept, common] = slots_.match(key_of(waiting.request()), tokens_of(waiting), waiting.length() - 1);
  const TokenCount length = waiting.request().usable(common);
  if (length == 0) return prefix;
  const bool alone = !slot_free && slots_.least_valuable(now, kept->slot) == nullptr;
  const TokenCount rest = kept->length() - length;
  const bool goes_on = length + kWorthACopy >= kept->prompt || rest < kWorthACopy;
  const bool most = 2 * length >= kept->length();
  const bool cheap = rest * row_seconds <= save_seconds(kept->length());
  const bool in_place =
      kept->readers == 0 && ((most && (goes_on || kept->safe || (alone && cheap))) || (alone && kept->safe));
  const TokenCount more = prefix.match.length - length;  // that the prefix cache has
  if (in_place) {
    if (more >= kWorthACopy && (row_seconds <= 0 || restore_seconds(prefix.match.length) < more * row_seconds)) {
      return prefix;
    }
    return {.match = {length, EntryId{}, nullptr}, .slot = kept->slot, .in_place = true};
  }
  const bool few = length < kWorthACopy && length + 1 < waiting.length();
  if (more >= 0 || few || (row_seconds > 0 && restore_seconds(length) > length * row_seconds)) return prefix;
  return {.match = {length, EntryId{}, nullptr}, .slot = kept->slot};
}

void Reuse::take_slot(SlotId slot) {
  if (slots_.find(slot)->copying) queue_.remove(slot);
  slots_.remove(slot);
  ++slots_.stats.taken;
}

void Reuse::read_slot(SlotId slot) {
  ++slots_.find(slot)->readers;
  ++slots_.stats.copied;
}

void Reuse::read_no_more(SlotId slot) { --slots_.find(slot)->readers; }

SlotId Reuse::give_away(TimePoint now, SlotId except) {
  if (const CachedSlots::Kept* least = slots_.least_valuable(now, except)) {
    const SlotId slot = least->slot;
    slots_.remove(slot);
    ++slots_.stats.dropped;
    return slot;
  }
  const CachedSlots::Kept* next = queue_.empty() ? slots_.least_unsafe(now) : nullptr;
  if (next != nullptr) copy_out(next->slot);
  return SlotId{};
}

bool Reuse::give_up(SlotId slot) {
  const CachedSlots::Kept& kept = *slots_.find(slot);
  if (kept.pinned()) return false;
  if (!kept.safe) return copy_out(slot), false;
  slots_.remove(slot);
  ++slots_.stats.dropped;
  return true;
}

void Reuse::copy_out(SlotId slot) {
  CachedSlots::Kept& kept = *slots_.find(slot);
  kept.copying = true;
  // Only what serves others: see Sequence::copy_tokens_to_keep().
  const auto end = std::ranges::find(kept.tokens, kNoToken);
  queue_.push({kept.request, kept.key, slot, {kept.tokens.begin(), end}, nullptr, 0, kept.returns});
}

void Reuse::copy_ahead(std::size_t free_slots, std::size_t waiting, bool rests, TimePoint now) {
  const std::size_t wanted = std::max(waiting, static_cast<std::size_t>(config_.slots_ready));
  while (disk_ && rests ? queue_.empty() : free_slots + slots_.ready() + queue_.size() < wanted) {
    const CachedSlots::Kept* next = slots_.least_unsafe(now);
    if (next == nullptr) return;
    copy_out(next->slot);
  }
}

void Reuse::copy_all_out(TimePoint now) {
  while (const CachedSlots::Kept* next = slots_.least_unsafe(now)) copy_out(next->slot);
}

void Reuse::empty_slots(std::vector<SlotId>& slots) {
  CHECK(queue_.empty());
  while (!slots_.empty()) {
    slots.push_back(slots_.all().back().slot);
    slots_.remove(slots.back());
  }
}

void Reuse::take_given_up(std::vector<SlotId>& slots) {
  slots.insert(slots.end(), given_up_.begin(), given_up_.end());
  given_up_.clear();
}

double Reuse::save_seconds(TokenCount tokens) const {
  const double each = save_seconds_per_byte_ > 0 ? save_seconds_per_byte_ : copy_seconds_per_byte_;
  return each * bytes_per_token_ * tokens;
}

void Reuse::take_pieces(Duration time, Batch& batch) {
  const double each = save_seconds_per_byte_ * bytes_per_token_;
  auto left = static_cast<TokenCount>(std::min(each > 0 ? to_seconds(time) / each : 0, double{INT32_MAX}));
  do {
    if (Save& next = queue_.next(); next.from == 0) share_begin(next);
    left = queue_.plan(left, config_.kv_block, batch);
  } while (left > 0 && !queue_.all_planned());
}

void Reuse::note_slot(const Sequence& sequence) {
  const Request& request = sequence.request();
  if (!config_.notes_slots || !uses_cache(request) || sequence.computed() == 0) return;
  const std::int32_t label = request.slot_label;
  SlotNote note;
  note.tenant = request.tenant.id;
  note.slot = label >= 0 ? label : config_.first_slot + sequence.slot().value;
  note.order = request.id.value;
  note.key = key_of(request);
  sequence.copy_tokens(sequence.computed(), note.tokens);
  notes_.add(std::move(note));
}

SlotCopy Reuse::copy_of_slot(std::int32_t slot, const Tenant& tenant) const {
  const SlotNote* note = notes_.find(tenant.id, slot);
  if (note == nullptr) return {};
  const PrefixCache::Match match = cache_.match(note->key, note->tokens, static_cast<TokenCount>(note->tokens.size()));
  SlotCopy copy{note->order, note->key.adapters, {}, nullptr};
  if (match.length == 0) return copy;
  PrefixCache::Kept kept = cache_.kept(match.entry);
  copy.tokens = std::move(kept.tokens);
  copy.kv = std::move(kept.snapshot);
  return copy;
}

// What a running sequence took over is copied out of its slot, with what it has computed since.
void Reuse::want_copy_of_slot(std::int32_t slot, const Tenant& tenant, const RunningSequences& running) {
  const SlotNote* note = notes_.find(tenant.id, slot);
  if (note == nullptr) return;
  const auto length = static_cast<TokenCount>(note->tokens.size());
  if (cache_.match(note->key, note->tokens, length).length == length) return;
  const auto [kept, known] = slots_.match(note->key, note->tokens, length);
  if (kept != nullptr && known == length) {
    if (!kept->copying) copy_out(kept->slot);
    return;
  }
  for (const auto& sequence : running) {
    if (!keeps_slots() || key_of(sequence->request()) != note->key || sequence->serves_others() < length) continue;
    const auto tokens = tokens_of(*sequence).first(static_cast<std::size_t>(length));
    if (std::ranges::equal(tokens, note->tokens)) wanted_.insert(sequence->id());
  }
}

bool Reuse::adopt_slot(std::int32_t slot, const Tenant& tenant, SlotCopy copy, double row_seconds, TimePoint now) {
  const PrefixKey key{config_.shared_by_tenants ? 0 : tenant.id, copy.adapters};
  const auto lasting = lasting_name(tenant);
  if (disk_ && lasting) disk_->name(key.tenant, *lasting);
  const std::chrono::duration<double> cost(static_cast<double>(copy.tokens.size()) * row_seconds);
  const auto inserted =
      cache_.insert(key, copy.tokens, std::move(copy.kv), std::chrono::duration_cast<Duration>(cost), now);
  if (disk_) disk_->take_evicted();
  if (inserted == PrefixCache::Insertion::refused) return false;
  notes_.add({tenant.id, slot, copy.order, key, std::move(copy.tokens)});
  return true;
}

}  // namespace chasqui
