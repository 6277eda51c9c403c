// What a slot holds is known here by one rule: a decode that returns ok appended exactly its rows; any other outcome
// left everything as it was (roll_back() sees to it when libllama kept some ubatches of the batch).
#include "model/llama_model.h"

#include <algorithm>
#include <exception>

#include <ggml-cpu.h>
#include <llama.h>

#include "base/log.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

ggml_type to_ggml(KvType type) {
  switch (type) {
    case KvType::f16: return GGML_TYPE_F16;
    case KvType::q8_0: return GGML_TYPE_Q8_0;
  }
  return GGML_TYPE_F16;
}

llama_flash_attn_type to_llama(FlashAttention choice) {
  switch (choice) {
    case FlashAttention::automatic: return LLAMA_FLASH_ATTN_TYPE_AUTO;
    case FlashAttention::on: return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    case FlashAttention::off: return LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

Result<void> check_config(const ModelConfig& config) {
  const auto slots_max = static_cast<std::int32_t>(llama_max_parallel_sequences());
  if (config.slots < 1 || config.slots > slots_max) {
    return invalid_field("slots", "slots must be between 1 and " + std::to_string(slots_max));
  }
  if (config.rows_max < config.slots) {
    return invalid_field("rows_max", "rows_max must be at least the number of slots, " + std::to_string(config.slots));
  }
  if (config.cells < 0) return invalid_field("cells", "cells must not be negative");
  if (config.polling < 0 || config.polling > 100) {
    return invalid_field("polling", "polling must be between 0 and 100");
  }
  if (config.threads > GGML_MAX_N_THREADS || config.threads_batch > GGML_MAX_N_THREADS) {
    return invalid_field("threads", "threads must be at most " + std::to_string(GGML_MAX_N_THREADS));
  }
  return {};
}

// Zeros replaced by what they stand for.
ModelConfig resolve(ModelConfig config, const ModelInfo& info) {
  if (config.threads <= 0) config.threads = default_threads();
  if (config.threads_batch <= 0) config.threads_batch = config.threads;
  if (config.cells == 0) config.cells = info.context_trained * config.slots;
  if (config.outputs_max <= 0) config.outputs_max = config.slots;
  config.outputs_max = std::clamp(config.outputs_max, config.slots, config.rows_max);
  return config;
}

llama_context_params context_params(const ModelConfig& config) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(config.cells);
  // Equal, so that one decode is one pass wherever the memory allows it, and so all or nothing.
  params.n_batch = static_cast<std::uint32_t>(config.rows_max);
  params.n_ubatch = params.n_batch;
  params.n_seq_max = static_cast<std::uint32_t>(config.slots);
  params.n_outputs_max = static_cast<std::uint32_t>(config.outputs_max);
  params.n_threads = config.threads;
  params.n_threads_batch = config.threads_batch;
  params.flash_attn_type = to_llama(config.flash_attention);
  params.type_k = to_ggml(config.kv_keys);
  params.type_v = to_ggml(config.kv_values);
  params.kv_unified = config.unified;
  // A window that has slid cannot be trimmed back. All cells, with the window as a mask only, can.
  params.swa_full = true;
  params.no_perf = true;
  return params;
}

bool abort_requested(void* flag) { return static_cast<std::atomic<bool>*>(flag)->load(std::memory_order_relaxed); }

}  // namespace

Result<std::unique_ptr<LlamaModel>> LlamaModel::make(WeightsPtr weights, const ModelConfig& config) {
  if (auto checked = check_config(config); !checked) return checked.error();
  const ModelConfig resolved = resolve(config, weights->info());
  std::unique_ptr<LlamaModel> model(new LlamaModel(std::move(weights)));
  if (auto opened = model->open(resolved); !opened) return opened.error();
  if (resolved.warm_up) {
    if (auto warm = model->warm_up(); !warm) return warm.error();
  }
  return model;
}

LlamaModel::LlamaModel(WeightsPtr weights) : weights_(std::move(weights)) {}

LlamaModel::~LlamaModel() {
  if (context_ != nullptr) llama_free(context_);
  if (pool_ != nullptr) ggml_threadpool_free(pool_);
}

Result<void> LlamaModel::open(const ModelConfig& config) {
  take_llama_error();
  context_ = llama_init_from_model(weights_->model(), context_params(config));
  if (context_ == nullptr) {
    return Error{ErrorCode::unavailable,
                 "Cannot make a context of " + std::to_string(config.cells) + " cells for " +
                     std::to_string(config.slots) + " slots: " + take_llama_error(),
                 ""};
  }
  shape_.vocabulary = weights_->info().vocabulary;
  shape_.slots = config.slots;
  shape_.cells = static_cast<TokenCount>(llama_n_ctx(context_));
  shape_.cells_per_slot = static_cast<TokenCount>(llama_n_ctx_seq(context_));
  shape_.rows_max = static_cast<std::int32_t>(llama_n_batch(context_));
  shape_.outputs_max = config.outputs_max;
  shape_.unified = config.unified;
  shape_.trims_anywhere = weights_->info().trims_anywhere();

  // One pool for all batches: libllama uses as many of its threads as each asks for.
  ggml_threadpool_params pool = ggml_threadpool_params_default(std::max(config.threads, config.threads_batch));
  pool.poll = static_cast<std::uint32_t>(config.polling);
  pool_ = ggml_threadpool_new(&pool);
  if (pool_ == nullptr) return Error{ErrorCode::unavailable, "Cannot start the compute threads.", ""};
  llama_attach_threadpool(context_, pool_, pool_);
  // With a GPU the threads of the CPU matter little, and a decode returns before it is done.
  if (config.adapt_threads && !llama_supports_gpu_offload()) {
    one_row_.emplace(config.threads);
    more_rows_.emplace(config.threads_batch);
  }
  // A state that was partly advanced could not be brought back, so such models finish what they began.
  if (shape_.trims_anywhere) llama_set_abort_callback(context_, abort_requested, &abort_);

  const auto rows = static_cast<std::size_t>(shape_.rows_max);
  tokens_.resize(rows);
  positions_.resize(rows);
  slots_.resize(rows);
  outputs_.resize(rows);
  slot_counts_.assign(rows, 1);
  slot_pointers_.resize(rows);
  for (std::size_t i = 0; i < rows; ++i) slot_pointers_[i] = &slots_[i];
  return {};
}

// Reads all weights once and lets libllama build its graphs.
Result<void> LlamaModel::warm_up() {
  Batch batch;
  const Token token = std::max(weights_->info().bos, 0);
  batch.rows.push_back({.token = token, .position = 0, .slot = SlotId{0}, .output = true});
  const DecodeStatus status = decode(batch);
  llama_memory_clear(llama_get_memory(context_), true);
  if (status != DecodeStatus::ok) return Error{ErrorCode::model_failure, "The model fails at its first decode.", ""};
  return {};
}

DecodeStatus LlamaModel::decode(const Batch& batch) {
  const llama_batch arrays = fill_arrays(batch);
  const LlamaLogQuiet quiet(abort_);
  std::optional<ThreadChoice>& choice = batch.rows.size() == 1 ? one_row_ : more_rows_;
  const TimePoint start = clock_.now();
  if (choice) use_threads(choice->choose(batch.kind, batch.rows.size(), start));
  int status = 0;
  try {
    status = llama_decode(context_, arrays);
  } catch (const std::exception& e) {
    log_error("libllama threw while decoding", {{"reason", e.what()}});
    status = -4;
  }
  const TimePoint end = clock_.now();
  if (choice && status == 0) choice->observe(end - start, end);
  return finish(status, batch);
}

DecodeStatus LlamaModel::finish(int status, const Batch& batch) {
  if (status == 0) return DecodeStatus::ok;
  if (status == 1) return DecodeStatus::no_room;  // found before anything was computed
  roll_back(batch);
  if (status == 2) return DecodeStatus::aborted;
  log_error("decoding failed", {{"status", status}, {"rows", batch.rows.size()}, {"parts", batch.parts.size()}});
  return DecodeStatus::failed;
}

llama_batch LlamaModel::fill_arrays(const Batch& batch) {
  CHECK(!batch.empty() && batch.rows.size() <= tokens_.size());
  std::int32_t outputs = 0;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const Row& row = batch.rows[i];
    DCHECK(row.slot.value >= 0 && row.slot.value < shape_.slots);
    DCHECK(i == 0 || batch.rows[i - 1].slot <= row.slot);
    tokens_[i] = row.token;
    positions_[i] = row.position;
    slots_[i] = row.slot.value;
    outputs_[i] = row.output ? 1 : 0;
    outputs += outputs_[i];
  }
  // libllama aborts the process when there are more.
  CHECK(outputs <= shape_.outputs_max);
  llama_batch arrays{};
  arrays.n_tokens = static_cast<std::int32_t>(batch.rows.size());
  arrays.token = tokens_.data();
  arrays.pos = positions_.data();
  arrays.n_seq_id = slot_counts_.data();
  arrays.seq_id = slot_pointers_.data();
  arrays.logits = outputs_.data();
  return arrays;
}

// libllama removes only the ubatch that failed; with a stream per slot, earlier ones of the same batch stay.
void LlamaModel::roll_back(const Batch& batch) {
  const llama_memory_t memory = llama_get_memory(context_);
  SlotId before;
  for (const Row& row : batch.rows) {
    if (row.slot == before) continue;
    before = row.slot;
    if (llama_memory_seq_rm(memory, row.slot.value, row.position, -1)) continue;
    log_warning("a slot lost its state in a failed decode", {{"slot", row.slot.value}});
    llama_memory_seq_rm(memory, row.slot.value, -1, -1);
  }
}

std::span<float> LlamaModel::logits(std::int32_t row) {
  float* values = llama_get_logits_ith(context_, row);
  CHECK(values != nullptr, "not an output row of the last decode");
  return {values, static_cast<std::size_t>(shape_.vocabulary)};
}

void LlamaModel::trim(SlotId slot, TokenCount keep) {
  CHECK(slot.value >= 0 && slot.value < shape_.slots && keep >= 0);
  const bool done = llama_memory_seq_rm(llama_get_memory(context_), slot.value, keep, -1);
  CHECK(done, "this model's memory cannot be cut there");
}

void LlamaModel::use_threads(std::int32_t threads) {
  if (threads == threads_) return;
  threads_ = threads;
  llama_set_n_threads(context_, threads, threads);
}

}  // namespace chasqui
