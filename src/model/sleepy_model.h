// A Model that can be unloaded while it is idle: fall_asleep() frees the context, and the weights if no other model
// has them, wake() makes it again. What slots held is lost; snapshots stay good, since the context is made alike. Owned
// by one worker and used on its thread, except request_abort(), which any thread may call at any time. REQUIRES of
// callers: no decode and no snapshot while it sleeps. A trim is as good as done, a restore fails.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "model/model.h"

namespace chasqui {

class CoreShare;

class SleepyModel final : public Model {
 public:
  using Make = std::function<Result<std::unique_ptr<Model>>()>;

  // Awake, with the model that `make` makes; an error is that of `make`. One of the `cores` counts as taken while it
  // falls asleep and while it wakes later; null: they are not shared.
  static Result<std::unique_ptr<Model>> start(Make make, std::shared_ptr<CoreShare> cores = nullptr);

  const ModelShape& shape() const override { return shape_; }
  DecodeStatus decode(const Batch& batch) override;
  Result<bool> encode(const MediaUnit& unit, std::uint32_t tenant) override;
  std::shared_ptr<MediaEncoder> encoder() const override { return encoder_; }
  std::span<float> logits(std::int32_t row) override { return model_->logits(row); }
  std::size_t row_threads() const override { return model_->row_threads(); }
  void for_each_row(std::size_t count, RowJob& job) override { model_->for_each_row(count, job); }
  void trim(SlotId slot, TokenCount keep) override;
  void reuse(SlotId slot, TokenCount keep) override { model_->reuse(slot, keep); }
  void shift(SlotId slot, TokenCount from, TokenCount to) override { model_->shift(slot, from, to); }
  void move(SlotId from, SlotId to) override { model_->move(from, to); }
  void exchange(SlotId a, SlotId b) override { model_->exchange(a, b); }
  KvSnapshotPtr copy_out(SlotId slot, TokenCount from, TokenCount to) override;
  bool restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) override;
  bool restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from, TokenCount to) override;
  bool copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) override;
  void request_abort() override;
  void clear_abort() override;
  std::uint64_t operations() const override;
  Heads* heads() override { return model_ ? model_->heads() : nullptr; }
  ComputeStats compute_stats() const override;

  bool fall_asleep() override;
  Result<void> wake() override;

 private:
  explicit SleepyModel(Make make) : make_(std::move(make)) {}

  const Make make_;
  std::shared_ptr<CoreShare> cores_;
  ModelShape shape_;
  std::shared_ptr<MediaEncoder> encoder_;
  std::unique_ptr<Model> model_;   // null while it sleeps
  std::uint64_t cuts_before_ = 0;  // it fell asleep
  // For those who abort: what they use is not freed while they use it.
  std::atomic<Model*> awake_{nullptr};
  mutable std::atomic<int> looking_{0};
  std::atomic<bool> abort_{false};
};

}  // namespace chasqui
