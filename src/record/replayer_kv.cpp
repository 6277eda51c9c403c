// The part of Replayer that is about what is kept: slots that clients save, models that sleep, and the disk.
#include "cache/disk_order.h"
#include "cache/snapshot_folder.h"
#include "record/replayer.h"
#include "sched/slot_notes.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kSnapshotBytesMax = std::uint64_t{1} << 48;
constexpr std::size_t kOrderKinds = static_cast<std::size_t>(DiskOrder::Kind::gone) + 1;
constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::internal) + 1;

// What nodes share, as the store has it.
bool is_as_shared(const DiskOutcome& outcome) {
  if (outcome.kind == DiskOrder::Kind::gone) return is_shared_file(outcome.file);
  if (outcome.kind != DiskOrder::Kind::found) return true;
  return is_shared_file(outcome.file) && !outcome.tokens.empty() &&
         outcome.bytes >= snapshot_file_bytes(outcome.tokens.size(), 0);
}

// Null: there is no such snapshot.
KvSnapshotPtr snapshot_of(std::uint64_t bytes, std::size_t tokens, TokenCount block) {
  const bool whole = block == 0 || (block > 0 && tokens > 0 && bytes % tokens == 0);
  if (bytes > kSnapshotBytesMax || tokens == 0 || !whole) return nullptr;
  return KvSnapshot::hollow(bytes, static_cast<TokenCount>(tokens), block);
}

}  // namespace

void Replayer::follow_slots(TapKind kind, ByteReader& io) {
  TimePoint now{};
  std::int32_t slot = 0;
  Tenant tenant;
  switch (kind) {
    case TapKind::slots_copied_out: return io(now), scheduler_->copy_slots_out(now);
    case TapKind::slots_emptied:
      if (scheduler_->running() > 0 || scheduler_->reuse().has_pieces()) return fails("a model slept that computed");
      return scheduler_->slots_were_emptied();
    case TapKind::slot_copy_wanted: return io(slot, tenant.id), scheduler_->want_copy_of_slot(slot, tenant);
    case TapKind::slot_copied: copies_are_out_ = true; return io(slot, tenant.id);
    default: return adopt_slot(io);
  }
}

void Replayer::adopt_slot(ByteReader& io) {
  std::int32_t slot = 0;
  Tenant tenant;
  SlotCopy copy;
  std::uint64_t bytes = 0;
  TokenCount block = 0;
  TimePoint now{};
  io(slot, tenant.id, tenant.lasting, copy.order, copy.adapters, bytes, block, now);
  io.tokens(copy.tokens);
  copy.kv = snapshot_of(bytes, copy.tokens.size(), block);
  if (io.failed() || !copy.kv) return fails("a slot was brought back that holds nothing");
  scheduler_->adopt_slot(slot, tenant, std::move(copy), now);
}

void Replayer::follow_disk(TapKind kind, ByteReader& io) {
  if (scheduler_->disk() == nullptr) return fails("there was a disk that there was not");
  switch (kind) {
    case TapKind::found_on_disk: return find_on_disk(io);
    case TapKind::disk_rests: return scheduler_->rest_disk();
    case TapKind::disk_flushed: return scheduler_->flush_to_disk();
    case TapKind::disk_done: return end_on_disk(io);
    default: return order_disk(io);
  }
}

void Replayer::find_on_disk(ByteReader& io) {
  FoundSnapshot file;
  io(file.number, file.bytes, file.usable, file.key.tenant, file.key.adapter);
  io.tokens(file.tokens);
  const std::uint64_t head = snapshot_file_bytes(file.tokens.size(), 0);
  const bool good = !is_shared_file(file.number) && (!file.usable || (!file.tokens.empty() && file.bytes >= head));
  if (io.failed() || !good || !found_.insert(file.number).second) return fails("a file was found that cannot be");
  scheduler_->found_on_disk(std::move(file));
}

void Replayer::end_on_disk(ByteReader& io) {
  DiskOutcome outcome;
  std::uint64_t bytes = 0;
  TokenCount block = 0;
  TimePoint now{};
  bool failed = false;
  bool read = false;
  ErrorCode code{};
  io.choice(outcome.kind, kOrderKinds);
  io(outcome.file, failed);
  io.choice(code, kErrorCodes);
  io(outcome.took, now, read, bytes, block, outcome.key.tenant, outcome.key.adapter, outcome.bytes);
  io.tokens(outcome.tokens);
  if (failed) outcome.error = Error{code, "as recorded", ""};
  if (read) outcome.kv = snapshot_of(bytes, outcome.tokens.size(), block);
  const bool whole = !io.failed() && (!read || outcome.kv) && is_as_shared(outcome);
  if (!whole) return fails("what came of the disk is not whole");
  if (outcome.kind == DiskOrder::Kind::read && !scheduler_->disk()->asked(outcome.file)) {
    return fails("a file was read that was not asked for");
  }
  if (outcome.kind == DiskOrder::Kind::write) {
    const auto written = written_.extract(outcome.file);
    if (written.empty()) return fails("a file was written that was not asked for");
    outcome.kv = written.mapped();
  }
  scheduler_->disk_done(std::move(outcome), now);
}

void Replayer::order_disk(ByteReader& io) {
  orders_.clear();
  scheduler_->take_disk_orders(orders_);
  std::uint64_t count = 0;
  io(count);
  std::uint64_t same = 0;
  for (DiskOrder& order : orders_) {
    DiskOrder::Kind kind{};
    std::uint64_t file = 0;
    if (same == count) break;
    io.choice(kind, kOrderKinds);
    io(file);
    if (io.failed() || kind != order.kind || file != order.file) break;
    ++same;
    if (kind == DiskOrder::Kind::write) written_[file] = std::move(order.kv);
  }
  if (same == count && same == orders_.size()) return;
  differs("the disk gets " + std::to_string(orders_.size()) + " orders, recorded were " + std::to_string(count) +
          "; the first " + std::to_string(same) + " agree");
}

}  // namespace chasqui
