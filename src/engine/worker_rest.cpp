// The part of Worker that has nothing to compute: it waits for commands, its model sleeps and wakes, and what its slots
// and its cache hold goes where it is kept, or is erased.
#include <algorithm>

#include "base/log.h"
#include "engine/worker.h"

namespace chasqui {
namespace {

constexpr Duration kDeadlineLook = milliseconds(100);

}  // namespace

void Worker::wait_for_commands() {
  // Deadlines are looked at meanwhile: encoding may take many seconds, and a disk may hang.
  if (scheduler_.waits_for_units() || scheduler_.waits_for_disk()) {
    return void(inbox_.drain_within(commands_, kDeadlineLook));
  }
  if ((to_rest_ || sleep_after_ > Duration::zero()) && !asleep() && scheduler_.idle()) {
    // News of other nodes is no work.
    const Duration left = std::max(busy_at_ + sleep_after_ - clock_.now(), Duration::zero());
    if (inbox_.drain_within(commands_, to_rest_ ? Duration::zero() : left)) return;
    to_rest_ = false;
    copy_slots_out();
    if (model_->fall_asleep()) {
      scheduler_.slots_were_emptied();
      if (runner_.drafter() != nullptr) runner_.drafter()->fall_asleep();
      asleep_.store(true, std::memory_order_relaxed);
      metrics_.sleeping.set(1);
      deliver();
      log_info("the model sleeps", {{"worker", number_}});
    }
  }
  inbox_.drain(commands_, scheduler_.reuse().frees() ? Wait::no : Wait::yes);
}

// May take long; commands that arrive meanwhile wait in the inbox.
void Worker::wake_up() {
  last_progress_.store(kNever.time_since_epoch().count(), std::memory_order_relaxed);  // this is no hanging
  const TimePoint started = clock_.now();
  auto awake = model_->wake();
  if (awake && runner_.drafter() != nullptr) awake = runner_.drafter()->wake();
  const TimePoint now = clock_.now();
  last_progress_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  if (!awake) {
    metrics_.failed_wakes.add();
    log_error("the model cannot be loaded again; its requests fail",
              {{"worker", number_}, {"reason", awake.error().message}});
    return scheduler_.fail_all({ErrorCode::model_failure, "the model cannot be loaded", ""}, now);
  }
  asleep_.store(false, std::memory_order_relaxed);
  busy_at_ = now;
  metrics_.sleeping.set(0);
  metrics_.wakes.add();
  metrics_.wake_seconds.observe(to_seconds(now - started));
  log_info("the model is awake again", {{"worker", number_}, {"took_ms", to_milliseconds(now - started)}});
}

void Worker::forget_tenant(ForgetCommand command) {
  if (encodings_) {
    command.forgetting->also();
    encodings_->forget_tenant(command.tenant, [forgetting = command.forgetting](std::size_t files, bool all) {
      forgetting->done(files, all);
    });
  }
  if (exchange_ != nullptr) erase_shared(command);
  const std::size_t copies = scheduler_.forget_tenant(command.tenant, ++last_ticket_);
  const bool files = scheduler_.disk() != nullptr && scheduler_.disk()->erasing(last_ticket_);
  if (!files) return command.forgetting->done(copies, true);
  forgotten_.emplace(last_ticket_, Forgotten{copies, std::move(command.forgetting)});
}

void Worker::take_outcome(DiskOutcome outcome) {
  if (auto erased = forgotten_.extract(outcome.kind == DiskOrder::Kind::sync ? outcome.file : 0)) {
    if (outcome.error) log_error("files could not be erased", {{"reason", outcome.error->message}});
    erased.mapped().forgetting->done(erased.mapped().copies, !outcome.error);
  }
  metrics_.count_disk(outcome);
  // It may have been listed before what is being erased was removed.
  if (outcome.kind == DiskOrder::Kind::found && erases_shared(outcome.key.tenant)) return;
  const bool written = outcome.kind == DiskOrder::Kind::write;
  const std::uint64_t file = outcome.file;
  const std::uint64_t tenant = outcome.key.tenant;
  scheduler_.disk_done(std::move(outcome), clock_.now());
  if (exchange_ != nullptr && written && scheduler_.disk()->contains(file)) exchange_->offer(file, tenant);
}

// Its files are not there any more when what of them was offered before is erased, too.
void Worker::erase_shared(const ForgetCommand& command) {
  const auto tenant = scheduler_.reuse().lasting_name(command.tenant);
  if (!tenant) return;
  command.forgetting->also();
  const auto erased = std::make_shared<std::atomic<bool>>(false);
  erased_shared_.emplace_back(*tenant, erased);
  exchange_->erase(*tenant, [forgetting = command.forgetting, erased](std::size_t snapshots, bool all) {
    erased->store(true);
    forgetting->done(snapshots, all);
  });
}

bool Worker::erases_shared(std::uint64_t tenant) {
  std::erase_if(erased_shared_, [](const auto& each) { return each.second->load(); });
  return std::ranges::any_of(erased_shared_, [tenant](const auto& each) { return each.first == tenant; });
}

void Worker::order_disk() {
  if (!disk_) return;
  if (scheduler_.idle()) scheduler_.rest_disk();
  scheduler_.take_disk_orders(orders_);
  if (exchange_ != nullptr) exchange_->take(number_, orders_);
  disk_->order(orders_);
}

// Before the model forgets what they hold. REQUIRES: nothing runs
void Worker::copy_slots_out() {
  scheduler_.copy_slots_out(clock_.now());
  while (scheduler_.reuse().has_left()) {
    scheduler_.next_batch(clock_.now(), batch_);
    runner_.run(batch_, result_);
    scheduler_.commit(batch_, result_);
    end_leases(batch_, result_);
  }
  batch_.clear();
}

void Worker::keep_on_disk() {
  if (!disk_) return;
  copy_slots_out();
  const DiskTier& tier = *scheduler_.disk();
  scheduler_.flush_to_disk();
  const TimePoint end =
      std::min(clock_.now() + kKeepFor, TimePoint(Duration(keep_until_.load(std::memory_order_relaxed))));
  for (TimePoint now = clock_.now(); now < end; now = clock_.now()) {
    order_disk();
    if (!tier.writing() && !tier.erasing()) break;  // what waited was there already, or has no room
    inbox_.drain_within(commands_, end - now);      // the disk may hang
    for (Command& command : commands_) {
      if (auto* outcome = std::get_if<DiskOutcome>(&command)) take_outcome(std::move(*outcome));
    }
    if (scheduler_.reuse().slots().least_unsafe(clock_.now()) == nullptr) continue;
    copy_slots_out();  // there was no room for it before
    scheduler_.flush_to_disk();
  }
  const DiskTier::Stats left = tier.stats();
  log_info("kept on disk", {{"files", left.store.files}, {"bytes", left.store.bytes}, {"not_written", left.queue}});
}

}  // namespace chasqui
