#include "model/sleepy_model.h"

#include <optional>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "model/core_share.h"

namespace chasqui {

Result<std::unique_ptr<Model>> SleepyModel::start(Make make, std::shared_ptr<CoreShare> cores) {
  std::unique_ptr<SleepyModel> model(new SleepyModel(std::move(make)));
  if (auto awake = model->wake(); !awake) return awake.error();
  model->shape_ = model->model_->shape();
  model->encoder_ = model->model_->encoder();
  model->cores_ = std::move(cores);
  return std::unique_ptr<Model>(std::move(model));
}

DecodeStatus SleepyModel::decode(const Batch& batch) {
  CHECK(model_ != nullptr, "a decode of a model that sleeps");
  return model_->decode(batch);
}

Result<bool> SleepyModel::encode(const MediaUnit& unit, std::uint32_t tenant) {
  CHECK(model_ != nullptr, "an encoding for a model that sleeps");
  return model_->encode(unit, tenant);
}

void SleepyModel::trim(SlotId slot, TokenCount keep) {
  if (model_) model_->trim(slot, keep);
}

KvSnapshotPtr SleepyModel::copy_out(SlotId slot, TokenCount from, TokenCount to) {
  return model_ ? model_->copy_out(slot, from, to) : nullptr;
}

bool SleepyModel::restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) {
  return model_ && model_->restore(slot, snapshot, keep);
}

bool SleepyModel::restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from,
                                TokenCount to) {
  return model_ && model_->restore_piece(slot, snapshot, keep, from, to);
}

bool SleepyModel::copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) {
  return model_ && model_->copy_piece(source, slot, keep, from, to);
}

void SleepyModel::request_abort() {
  abort_ = true;
  ++looking_;
  if (Model* model = awake_) model->request_abort();
  --looking_;
}

void SleepyModel::clear_abort() {
  abort_ = false;
  if (model_) model_->clear_abort();
}

std::uint64_t SleepyModel::operations() const {
  ++looking_;
  const Model* model = awake_;
  const std::uint64_t operations = model != nullptr ? model->operations() : 0;
  --looking_;
  return operations;
}

ComputeStats SleepyModel::compute_stats() const {
  ComputeStats stats = model_ ? model_->compute_stats() : ComputeStats{};
  stats.cuts += cuts_before_;
  return stats;
}

bool SleepyModel::fall_asleep() {
  std::optional<CoreShare::Taken> freeing;
  if (cores_) freeing.emplace(*cores_);
  cuts_before_ = compute_stats().cuts;
  awake_ = nullptr;
  while (looking_ != 0) continue;  // a few instructions of a thread that has just seen it awake
  model_.reset();
#ifdef __GLIBC__
  malloc_trim(0);  // what libllama had in small pieces goes back to the system, too
#endif
  return true;
}

Result<void> SleepyModel::wake() {
  if (model_) return {};
  std::optional<CoreShare::Taken> loading;
  if (cores_) loading.emplace(*cores_);
  auto made = make_();
  if (!made) return made.error();
  model_ = std::move(*made);
  awake_ = model_.get();
  if (abort_) model_->request_abort();
  return {};
}

}  // namespace chasqui
