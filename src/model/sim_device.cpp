#include "model/sim_device.h"

#include <algorithm>

namespace chasqui {
namespace {

// Of a slot, within the device: what it holds is not known here, and matters little.
constexpr int kCellsMoved = 1024;

}  // namespace

Duration SimDevice::work(const Batch& batch) const {
  const Duration row = batch.kind == Batch::Kind::decode ? options_.decode_row : options_.prefill_row;
  return options_.pass + static_cast<Duration::rep>(batch.rows.size()) * row;
}

void SimDevice::give(Duration work) { busy_until_ = std::max(busy_until_, clock_.now()) + work; }

void SimDevice::wait() {
  if (!done()) options_.spend(busy_until_ - clock_.now());
}

DecodeStatus SimDevice::decode(const Batch& batch) {
  options_.spend(options_.launch);
  give(work(batch));
  const DecodeStatus status = model_->decode(batch);
  if (options_.synchronises) wait();
  return status;
}

std::span<float> SimDevice::logits(std::int32_t row) {
  wait();
  return model_->logits(row);
}

void SimDevice::move(SlotId from, SlotId to) {
  give(kCellsMoved * options_.move_cell);
  model_->move(from, to);
}

void SimDevice::exchange(SlotId a, SlotId b) {
  give(2 * kCellsMoved * options_.move_cell);
  model_->exchange(a, b);
}

// What is copied was computed before.
void SimDevice::copy(TokenCount tokens) {
  wait();
  const std::chrono::duration<double> bus(tokens * options_.cell_bytes / options_.bus_bytes_per_second);
  options_.spend(std::chrono::duration_cast<Duration>(bus));
}

KvSnapshotPtr SimDevice::copy_out(SlotId slot, TokenCount from, TokenCount to) {
  copy(to - from);
  return model_->copy_out(slot, from, to);
}

bool SimDevice::restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) {
  copy(keep);
  return model_->restore(slot, snapshot, keep);
}

bool SimDevice::restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from,
                              TokenCount to) {
  copy(to - from);
  return model_->restore_piece(slot, snapshot, keep, from, to);
}

bool SimDevice::copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) {
  give((to - from) * options_.move_cell);
  return model_->copy_piece(source, slot, keep, from, to);
}

}  // namespace chasqui
