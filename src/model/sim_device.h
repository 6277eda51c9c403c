// A Model on a device of its own, as a GPU is one, around a Model that takes no time: decode() only gives the device
// its work, and what it gave is computed one after the other; to read logits is to wait for the end; copies to the host
// go over a bus. So the time of a step is known to those alone who wait for its end, as Model::decode() promises to.
// For tests: time passes through `spend`. Owned by one worker and used on its thread only.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "model/model.h"

namespace chasqui {

struct DeviceOptions {
  Duration launch = milliseconds(1);  // of the host, for each batch
  Duration pass = milliseconds(12);   // of the device, for each batch: a pass over the weights
  Duration decode_row = microseconds(25);
  Duration prefill_row = microseconds(60);
  Duration move_cell = Duration(50);      // within the device
  double cell_bytes = 131'072;            // of the KV of a token
  double bus_bytes_per_second = 4e9;      // between the device and the host
  bool synchronises = true;               // decode() waits for the device; false: what a Model must not do
  std::function<void(Duration)> spend{};  // lets that much time pass on `clock`
};

class SimDevice final : public Model {
 public:
  SimDevice(std::unique_ptr<Model> model, const Clock& clock, DeviceOptions options)
      : model_(std::move(model)), clock_(clock), options_(std::move(options)) {}

  const ModelShape& shape() const override { return model_->shape(); }
  DecodeStatus decode(const Batch& batch) override;
  std::span<float> logits(std::int32_t row) override;
  void trim(SlotId slot, TokenCount keep) override { model_->trim(slot, keep); }
  void reuse(SlotId slot, TokenCount keep) override { model_->reuse(slot, keep); }
  void shift(SlotId slot, TokenCount from, TokenCount to) override { model_->shift(slot, from, to); }
  void move(SlotId from, SlotId to) override;
  void exchange(SlotId a, SlotId b) override;
  KvSnapshotPtr copy_out(SlotId slot, TokenCount from, TokenCount to) override;
  bool restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) override;
  bool restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from, TokenCount to) override;
  bool copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) override;
  // What the device was given it computes to the end.
  void request_abort() override {}
  void clear_abort() override {}

  // What the device takes for a batch.
  Duration work(const Batch& batch) const;
  // Since the device has had nothing to do.
  bool done() const { return clock_.now() >= busy_until_; }

 private:
  void give(Duration work);
  void wait();
  void copy(TokenCount tokens);

  const std::unique_ptr<Model> model_;
  const Clock& clock_;
  const DeviceOptions options_;
  TimePoint busy_until_{};
};

}  // namespace chasqui
