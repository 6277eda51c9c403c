#include "raw_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace chasqui::raw {
namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "raw_decode: %s\n", what.c_str());
  std::exit(1);
}

void quiet_log(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

double median(Samples samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

double smallest(const Samples& samples) {
  return samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end());
}

double time_ms(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

RawModel::RawModel(const Options& options, std::int32_t sequences, std::int32_t cells)
    : threads_(options.threads), every_logit_(options.every_logit) {
  if (threads_ <= 0) threads_ = static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  llama_log_set(quiet_log, nullptr);
  llama_backend_init();
  model_ = llama_model_load_from_file(options.model_path.c_str(), llama_model_default_params());
  if (model_ == nullptr) fail("cannot load " + options.model_path);
  vocabulary_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));

  const std::int32_t rows = std::max(options.rows, sequences);
  llama_context_params params = llama_context_default_params();
  if (options.no_flash) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.n_ctx = static_cast<std::uint32_t>(std::max(cells, options.slot_cells) * sequences);
  params.n_batch = static_cast<std::uint32_t>(rows);
  params.n_ubatch = params.n_batch;
  params.n_seq_max = static_cast<std::uint32_t>(sequences);
  params.n_outputs_max = static_cast<std::uint32_t>(std::max(sequences, 1));
  params.n_threads = threads_;
  params.n_threads_batch = threads_;
  params.kv_unified = options.unified;
  params.swa_full = true;
  params.no_perf = true;
  context_ = llama_init_from_model(model_, params);
  if (context_ == nullptr) fail("cannot make the context");

  ggml_threadpool_params pool = ggml_threadpool_params_default(threads_);
  pool_ = ggml_threadpool_new(&pool);
  llama_attach_threadpool(context_, pool_, pool_);
  batch_ = llama_batch_init(rows, 0, 1);

  add_row(0, 0, true);  // reads all weights once
  decode();
  clear();
}

RawModel::~RawModel() {
  llama_batch_free(batch_);
  llama_free(context_);
  ggml_threadpool_free(pool_);
  llama_model_free(model_);
}

llama_token RawModel::next_token() {
  random_ = random_ * 1664525U + 1013904223U;
  return static_cast<llama_token>((random_ >> 8) % static_cast<std::uint32_t>(vocabulary_));
}

void RawModel::add_row(std::int32_t slot, std::int32_t position, bool output) {
  const std::int32_t i = batch_.n_tokens++;
  batch_.token[i] = next_token();
  batch_.pos[i] = position;
  batch_.n_seq_id[i] = 1;
  batch_.seq_id[i][0] = slot;
  batch_.logits[i] = output ? 1 : 0;
}

double RawModel::decode() {
  const double took = time_ms([this] {
    if (const int status = llama_decode(context_, batch_); status != 0) {
      fail("llama_decode says " + std::to_string(status) + " to " + std::to_string(batch_.n_tokens) + " rows");
    }
    llama_synchronize(context_);
    for (std::int32_t i = 0; i < batch_.n_tokens; ++i) {
      if (batch_.logits[i] == 0) continue;
      const float* logits = llama_get_logits_ith(context_, i);
      const std::int32_t touched = every_logit_ ? vocabulary_ : 1;
      for (std::int32_t j = 0; j < touched; ++j) sink_ = std::max(sink_, logits[j]);
    }
  });
  batch_.n_tokens = 0;
  return took;
}

void RawModel::fill(std::int32_t slot, std::int32_t cells) {
  const auto rows_max = static_cast<std::int32_t>(llama_n_batch(context_));
  for (std::int32_t position = 0; position < cells; ++position) {
    add_row(slot, position, false);
    if (batch_.n_tokens == rows_max || position + 1 == cells) decode();
  }
}

void RawModel::trim(std::int32_t slot, std::int32_t keep) {
  if (!llama_memory_seq_rm(memory(), slot, keep, -1)) fail("this model's memory cannot be cut");
}

void RawModel::clear() { llama_memory_clear(memory(), false); }

}  // namespace chasqui::raw
