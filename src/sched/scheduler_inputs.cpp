// What a Scheduler is told beside requests and steps, for a tap to see: tenants that are forgotten, slots that clients
// save, the disk, and pictures and sounds that were encoded.
#include <iterator>
#include <utility>

#include "sched/scheduler.h"

namespace chasqui {

std::size_t Scheduler::forget_tenant(const Tenant& tenant, std::uint64_t ticket) {
  if (config_.tap != nullptr) config_.tap->tenant_forgotten(tenant, ticket);
  const std::size_t copies = reuse_.forget_tenant(tenant, ticket);
  release_given_up();
  return copies;
}

void Scheduler::copy_slots_out(TimePoint now) {
  if (config_.tap != nullptr) config_.tap->slots_copied_out(now);
  reuse_.copy_all_out(now);
}

void Scheduler::want_copy_of_slot(std::int32_t slot, const Tenant& tenant) {
  if (config_.tap != nullptr) config_.tap->slot_copy_wanted(slot, tenant);
  reuse_.want_copy_of_slot(slot, tenant, running_);
}

SlotCopy Scheduler::copy_of_slot(std::int32_t slot, const Tenant& tenant) const {
  SlotCopy copy = reuse_.copy_of_slot(slot, tenant);
  if (config_.tap != nullptr && copy.kv) config_.tap->slot_copied(slot, tenant);
  return copy;
}

bool Scheduler::adopt_slot(std::int32_t slot, const Tenant& tenant, SlotCopy copy, TimePoint now) {
  if (config_.tap != nullptr) config_.tap->slot_adopted(slot, tenant, copy, now);
  return reuse_.adopt_slot(slot, tenant, std::move(copy), step_time_.measured_row_seconds(), now);
}

void Scheduler::found_on_disk(FoundSnapshot file) {
  if (config_.tap != nullptr) config_.tap->found_on_disk(file);
  reuse_.disk()->found(std::move(file));
}

void Scheduler::rest_disk() {
  if (config_.tap != nullptr) config_.tap->disk_rests();
  reuse_.disk()->rest();
}

void Scheduler::flush_to_disk() {
  if (config_.tap != nullptr) config_.tap->disk_flushed();
  reuse_.disk()->flush();
}

void Scheduler::take_disk_orders(std::vector<DiskOrder>& orders) {
  const std::size_t before = orders.size();
  reuse_.disk()->take_orders(orders);
  if (config_.tap != nullptr) config_.tap->disk_ordered(std::span(orders).subspan(before));
}

void Scheduler::disk_done(DiskOutcome outcome, TimePoint now) {
  if (config_.tap != nullptr) config_.tap->disk_done(outcome, now);
  reuse_.disk()->done(std::move(outcome), step_time_.measured_row_seconds(), now);
  reuse_.disk_has_done();
}

void Scheduler::take_encoding_orders(std::vector<EncodingOrder>& orders) {
  orders.insert(orders.end(), std::make_move_iterator(encoding_orders_.begin()),
                std::make_move_iterator(encoding_orders_.end()));
  encoding_orders_.clear();
}

// One that has lost its slot meanwhile asks again when it goes on, and finds what is kept.
void Scheduler::encoded(const EncodingOutcome& outcome, TimePoint now) {
  if (config_.tap != nullptr) config_.tap->encoded(outcome, now);
  Sequence* const sequence = find_running(outcome.request);
  if (sequence == nullptr || !sequence->unit_ready(outcome.begin, outcome.fresh) || !outcome.error) return;
  finish(*sequence, FinishReason::error, now, *outcome.error);
  retire_finished(Keep::what_is_worth_it);
}

}  // namespace chasqui
