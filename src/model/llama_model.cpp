// What a slot holds is known here by one rule: a decode that returns ok appended exactly its rows; any other outcome
// left everything as it was (roll_back() sees to it when libllama kept some ubatches of the batch).
#include "model/llama_model.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>

#include <ggml-cpu.h>
#include <llama.h>

#include "base/log.h"
#include "model/llama_control_vector.h"
#include "model/llama_params.h"
#include "model/llama_places.h"
#include "model/llama_runtime.h"
#include "model/mutual_attention.h"

namespace chasqui {
namespace {

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
  if (config.threads <= 0) config.threads = default_threads(config.llama);
  if (config.threads_batch <= 0) config.threads_batch = config.threads;
  if (config.cells == 0) config.cells = info.context_trained * config.slots;
  if (config.outputs_max <= 0) config.outputs_max = config.slots;
  config.outputs_max = std::clamp(config.outputs_max, config.slots, config.rows_max);
  return config;
}

llama_context_params context_params(const ModelConfig& config) {
  llama_context_params params = first_context_params(config.llama);
  params.n_ctx = static_cast<std::uint32_t>(config.cells);
  // Equal, so that one decode is one pass wherever the memory allows it, and so all or nothing.
  params.n_batch = static_cast<std::uint32_t>(config.rows_max);
  params.n_ubatch = params.n_batch;
  params.n_seq_max = static_cast<std::uint32_t>(config.slots);
  params.n_outputs_max = static_cast<std::uint32_t>(config.outputs_max);
  params.n_threads = config.threads;
  params.n_threads_batch = config.threads_batch;
  params.flash_attn_type = static_cast<llama_flash_attn_type>(flash_attention_type_of(config.flash_attention));
  params.type_k = static_cast<ggml_type>(ggml_type_of(config.kv_keys));
  params.type_v = static_cast<ggml_type>(ggml_type_of(config.kv_values));
  params.kv_unified = config.unified;
  // Else a layer with a window has cells for it and one batch: enough to take back what the last batch computed, which
  // is all that anybody does.
  params.swa_full = config.swa_full;
  // libllama wants a batch to be larger than what can be taken back, and says 0 where the model cannot.
  params.n_rs_seq = static_cast<std::uint32_t>(std::clamp(config.rollback, 0, std::max(config.rows_max - 2, 0)));
  params.no_perf = true;
  return params;
}

// Decoding so long at start is worth it for the right number of threads; the first decode also reads the weights.
constexpr Duration kMeasuring = milliseconds(350);
constexpr Duration kReadingGigabyte = seconds(2);

// "1: 25.1 ms, 2: 13.3 ms"
std::string in_words(const ThreadFigures& figures, std::int32_t rows) {
  std::string text;
  for (const ThreadFigure& figure : figures) {
    if (figure.rows != rows) continue;
    char words[48];
    std::snprintf(words, sizeof words, "%d: %.1f ms", figure.threads, to_milliseconds(figure.took));
    text += (text.empty() ? "" : ", ") + std::string(words);
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<LlamaModel>> LlamaModel::make(WeightsPtr weights, const ModelConfig& config,
                                                     const Clock* clock) {
  static const RealClock real_clock;
  if (auto checked = check_config(config); !checked) return checked.error();
  const ModelConfig resolved = resolve(config, weights->info());
  const KeptPlace place(resolved.llama);
  std::unique_ptr<LlamaModel> model(new LlamaModel(std::move(weights), clock != nullptr ? *clock : real_clock));
  model->keeps_to_part_ = config.cores && config.threads <= 0;
  if (auto opened = model->open(resolved); !opened) return opened.error();
  if (resolved.warm_up && model->weights_->info().generates) {
    if (auto warm = model->warm_up(resolved); !warm) return warm.error();
  }
  if (auto heads = model->open_heads(resolved); !heads) return heads.error();
  model->compute_threads_->expect_another_thread();
  return model;
}

LlamaModel::LlamaModel(WeightsPtr weights, const Clock& clock) : weights_(std::move(weights)), clock_(clock) {}

LlamaModel::~LlamaModel() {
  heads_.reset();
  if (context_ != nullptr) llama_free(context_);
}

Result<void> LlamaModel::open(const ModelConfig& config) {
  auto threads = LlamaThreads::make(config.llama, config.polling, config.draft);
  if (!threads) return threads.error();
  compute_threads_ = std::move(*threads);
  take_llama_error();
  context_ = weights_->make_context(context_params(config));
  if (context_ == nullptr) {
    return Error{ErrorCode::unavailable,
                 "Cannot make a context of " + std::to_string(config.cells) + " cells for " +
                     std::to_string(config.slots) + " slots: " + take_llama_error(),
                 ""};
  }
  log_places(context_);
  if (config.on_gpus) config.on_gpus(gpu_addresses(context_, config.llama));
  if (!config.draft) {
    if (auto applied = apply_control_vectors(context_, config.llama, weights_->info()); !applied) return applied;
  }
  shape_.vocabulary = weights_->info().vocabulary;
  shape_.slots = config.slots;
  shape_.cells = static_cast<TokenCount>(llama_n_ctx(context_));
  shape_.cells_per_slot = static_cast<TokenCount>(llama_n_ctx_seq(context_));
  shape_.long_rope = weights_->info().rope_context > 0 && shape_.cells_per_slot > weights_->info().rope_context;
  if (config.cells_per_slot_max > 0) shape_.cells_per_slot = std::min(shape_.cells_per_slot, config.cells_per_slot_max);
  shape_.rows_max = static_cast<std::int32_t>(llama_n_batch(context_));
  shape_.outputs_max = config.outputs_max;
  shape_.generates = weights_->info().generates && llama_get_memory(context_) != nullptr;
  shape_.unified = config.unified;
  shape_.trims_anywhere = weights_->info().trims_anywhere();
  shape_.rollback = static_cast<TokenCount>(llama_n_rs_seq(context_));
  const TokenCount window = weights_->info().sliding_window;
  shape_.cuts_snapshots = shape_.trims_anywhere && (window == 0 || window >= shape_.cells_per_slot);
  shape_.shifts = shape_.cuts_snapshots && shape_.generates && llama_memory_can_shift(llama_get_memory(context_));
  cuttable_ = shape_.trims_anywhere;
  // libllama splits a batch where the ids of its sequences do not follow each other; recurrent states do not mind.
  shape_.dense_slots = !shape_.unified && shape_.trims_anywhere;

  several_dimensions_ = has_several_dimensions(*weights_);
  positions_.resize(static_cast<std::size_t>(shape_.slots));
  media_ = config.media;
  shape_.reads_media = media_ != nullptr;
  cores_ = config.cores;
  if (cores_ && !config.draft) core_place_.emplace(*cores_);
  fixed_one_row_ = config.threads;
  fixed_more_rows_ = config.threads_batch;
  use_threads(std::max(config.threads, config.threads_batch), false);
  // With a GPU the threads of the CPU matter little, and a decode returns before it is done.
  if (config.adapt_threads && !offloads_to_gpu()) choice_.emplace(config.threads, config.threads_batch);
  llama_set_abort_callback(context_, should_end, this);
  rows_.emplace(shape_);
  return {};
}

// Not before the number of threads was found: the batches for that have no draft tokens.
Result<void> LlamaModel::open_heads(const ModelConfig& config) {
  HeadsConfig wanted = config.heads;
  if (!shape_.trims_anywhere) wanted.draft_tokens = std::min(wanted.draft_tokens, shape_.rollback);
  if (!wanted.any() || wanted.draft_tokens == 0) return {};
  auto heads = LlamaHeads::make(context_, *weights_, context_params(config), shape_, wanted);
  if (!heads) return heads.error();
  heads_ = std::move(*heads);
  heads_->use_threads(pool_, threads_);
  counts_adapters_ = true;  // EAGLE-3 has changed what the context gives
  return {};
}

// Reads all weights once, lets libllama build its graphs, and finds out how many threads are worth using.
Result<void> LlamaModel::warm_up(const ModelConfig& config) {
  const TimePoint start = clock_.now();
  Batch batch = warm_up_batch(1);
  ThreadPlan whole = plan(batch);
  // Strangled threads must not keep the server from starting.
  const auto gigabytes = static_cast<std::int64_t>(weights_->info().size_bytes >> 30);
  if (whole.threads > 1 && choice_) whole.patience = kMeasuring + gigabytes * kReadingGigabyte;
  const DecodeStatus status = decode_as(whole, batch);
  const bool may_have_layout = shape_.cuts_snapshots && !several_dimensions_;
  if (status == DecodeStatus::ok && may_have_layout) layout_ = LlamaKvLayout::find(context_, SlotId{0});
  shape_.kv_block = layout_ ? layout_->block_tokens() : 0;
  shape_.kv_token_bytes = layout_ ? layout_->bytes_per_token() : 0;
  llama_memory_clear(llama_get_memory(context_), true);
  if (status != DecodeStatus::ok) return Error{ErrorCode::model_failure, "The model fails at its first decode.", ""};
  if (choice_ && choice_->most() > 1 && !recall_threads(config.thread_figures)) find_threads(config, start);
  return {};
}

void LlamaModel::find_threads(const ModelConfig& config, TimePoint start) {
  const TimePoint end = clock_.now() + kMeasuring;
  const Duration first = clock_.now() - start;
  const std::int32_t more = std::min(8, shape_.rows_max);
  const std::uint64_t cuts = cuts_;
  ThreadFigures figures;
  const Duration row = measure_threads(warm_up_batch(1), first, end, figures);
  measure_threads(warm_up_batch(more), 4 * row, end, figures);
  log_info("compute threads measured", {{"one_row", in_words(figures, 1)},
                                        {"eight_rows", in_words(figures, more)},
                                        {"took_ms", to_milliseconds(clock_.now() - start)}});
  // A run that was cut, or had no time to compare, shared a core with a process that may be gone at the next start.
  if (cuts == cuts_ && figures.size() > 1 && config.on_threads_measured) config.on_threads_measured(figures);
}

// As if they had just been measured. False: there are none, or of numbers that are no choice here.
bool LlamaModel::recall_threads(const ThreadFigures& figures) {
  if (figures.empty()) return false;
  for (const ThreadFigure& figure : figures) {
    if (figure.rows < 1 || figure.rows > shape_.rows_max || figure.took <= Duration::zero()) return false;
    if (std::ranges::count(choice_->numbers(static_cast<std::size_t>(figure.rows)), figure.threads) == 0) return false;
  }
  choice_->forget(warm_up_batch(1));  // the first decode also read the weights
  for (const ThreadFigure& figure : figures) {
    choice_->choose_exactly(warm_up_batch(figure.rows), figure.threads);
    choice_->observe(figure.took, clock_.now());
  }
  log_info("compute threads as measured before",
           {{"one_row", in_words(figures, 1)}, {"eight_rows", in_words(figures, std::min(8, shape_.rows_max))}});
  return true;
}

Batch LlamaModel::warm_up_batch(std::int32_t rows) const {
  Batch batch;
  batch.kind = rows == 1 ? Batch::Kind::decode : Batch::Kind::prefill;
  const Token token = std::max(weights_->info().bos, 0);
  for (std::int32_t i = 0; i < rows; ++i) {
    batch.rows.push_back({.token = token, .position = i, .slot = SlotId{0}, .output = i + 1 == rows});
  }
  return batch;
}

// Decodes the batch with all numbers of threads that may be worth it. Few threads come first, because what they take is
// the measure of whether more are strangled. `first` is what most threads may take. Returns the least time.
Duration LlamaModel::measure_threads(const Batch& batch, Duration first, TimePoint end, ThreadFigures& figures) {
  constexpr int kTimes = 3;
  Duration best = first;
  const auto numbers = choice_->numbers(batch.rows.size());
  for (std::size_t i = numbers.size(); i-- > 0 && numbers[i] <= choice_->limit();) {
    if (i > 0 && first * choice_->most() / numbers[i] > 2 * kMeasuring) continue;
    Duration least = Duration::max();
    for (int times = 0; times < kTimes && least > kMeasuring / 20; ++times) {
      const TimePoint start = clock_.now();
      if (start + std::min(least, best) > end) return best;
      if (figures.empty() && times == 0) choice_->forget(batch);  // the first decode also read the weights
      ThreadPlan plan = choice_->choose_exactly(batch, numbers[i]);
      if (numbers[i] > 1) plan.patience = std::min(plan.patience, 2 * first + kMeasuring / 10);
      const std::uint64_t cuts = cuts_;
      if (decode_as(plan, batch) != DecodeStatus::ok) return best;
      llama_memory_clear(llama_get_memory(context_), false);
      if (cuts != cuts_) return best;
      least = std::min(least, clock_.now() - start);
    }
    best = std::min(best, least);
    figures.push_back({static_cast<std::int32_t>(batch.rows.size()), numbers[i], least});
  }
  return best;
}

DecodeStatus LlamaModel::decode(const Batch& batch) {
  if (!apply(batch.adapters)) return DecodeStatus::failed;
  if (std::ranges::find(batch.rows, looked_at_, &Row::slot) != batch.rows.end()) changes(looked_at_);
  if (goes_on_inside(batch)) {
    const Row& first = batch.rows[0];
    if (!positions_of(first.slot).has_read(batch.unit->begin, first.position)) return DecodeStatus::failed;
    uncut_ = true;
  }
  cuttable_ = shape_.trims_anywhere || keep_state(batch);
  const bool mutual = batch.unit != nullptr && !batch.unit->causal;
  counts_adapters_ = counts_adapters_ || mutual;  // libllama makes its graphs anew, before it and behind it
  const DecodeStatus status = decode_as(plan(batch), batch);
  counts_adapters_ = counts_adapters_ || mutual;
  return status;
}

// False: one of them is not there.
bool LlamaModel::apply(const AdapterSet* adapters) {
  const std::span<const AdapterUse> wanted = adapters != nullptr ? std::span(adapters->uses) : std::span<AdapterUse>();
  if (std::ranges::equal(wanted, applied_)) return true;
  if (!weights_->set_adapters(context_, wanted)) return false;
  applied_.assign(wanted.begin(), wanted.end());
  counts_adapters_ = true;
  return true;
}

ThreadPlan LlamaModel::plan(const Batch& batch) {
  const TimePoint now = clock_.now();
  if (core_place_) core_place_->begin_decode();
  const std::int32_t allowed = keeps_to_part_ ? cores_->part(now) : ThreadChoice::kAnyNumber;
  if (choice_) return choice_->choose(batch, now, allowed);
  return {std::min(batch.rows.size() == 1 ? fixed_one_row_ : fixed_more_rows_, allowed), Duration::max()};
}

DecodeStatus LlamaModel::decode_as(ThreadPlan plan, const Batch& batch) {
  llama_batch arrays = rows_->fill(batch, embeddings_of(batch));
  if (several_dimensions_) place(batch, arrays);
  const MutualAttention mutual(context_, batch.unit != nullptr && !batch.unit->causal);
  for (;;) {
    const TimePoint start = clock_.now();
    const int status = compute(arrays, plan, start);
    const TimePoint end = clock_.now();
    const bool cut = status == 2 && cut_ && !abort_.load(std::memory_order_relaxed);
    if (!cut) {
      if (status == 0 && choice_) choice_->observe(end - start, end);
      if (core_place_) core_place_->end_decode(end);
      return finish(status, batch);
    }
    ++cuts_;
    if (!roll_back(batch)) {
      if (core_place_) core_place_->end_decode(end);
      return finish(-1, batch);
    }
    log_debug("a decode was cut: its threads wait for each other",
              {{"threads", plan.threads}, {"rows", batch.rows.size()}, {"spent_ms", to_milliseconds(end - start)}});
    plan = choice_->cut(end - start, end);
  }
}

int LlamaModel::compute(const llama_batch& arrays, const ThreadPlan& plan, TimePoint start) {
  use_threads(plan.threads, arrays.n_tokens > 1);
  deadline_ = plan.patience == Duration::max() ? kNever : start + plan.patience;
  cut_ = false;
  ended_.store(false, std::memory_order_relaxed);
  const LlamaLogQuiet quiet(ended_);
  std::optional<SharedLock::Reading> counting;
  if (counts_adapters_) counting.emplace(weights_->adapters_lock());
  try {
    const int status = llama_decode(context_, arrays);
    counts_adapters_ = counts_adapters_ && status != 0;
    uncut_ = false;
    // A GPU goes on computing after that, and a step without output rows would seem to have taken no time.
    llama_synchronize(context_);
    return status;
  } catch (const std::exception& e) {
    log_error("libllama threw while decoding", {{"reason", e.what()}});
    return -4;
  }
}

// Called by the first compute thread, which is the worker's, after each operation.
bool LlamaModel::should_end(void* self) {
  auto& model = *static_cast<LlamaModel*>(self);
  model.operations_.fetch_add(1, std::memory_order_relaxed);
  if (!model.cuttable_ || model.uncut_) return false;
  if (!model.abort_.load(std::memory_order_relaxed)) {
    if (model.deadline_ == kNever || model.clock_.now() < model.deadline_) return false;
    model.cut_ = true;
  }
  model.ended_.store(true, std::memory_order_relaxed);
  return true;
}

DecodeStatus LlamaModel::finish(int status, const Batch& batch) {
  if (status == 0) {
    note_positions(batch);
    return DecodeStatus::ok;
  }
  if (status == 1) return DecodeStatus::no_room;  // found before anything was computed
  if (roll_back(batch) && status == 2) return DecodeStatus::aborted;
  log_error("decoding failed", {{"status", status}, {"rows", batch.rows.size()}, {"parts", batch.parts.size()}});
  return DecodeStatus::failed;
}

std::span<float> LlamaModel::logits(std::int32_t row) {
  float* values = llama_get_logits_ith(context_, row);
  CHECK(values != nullptr, "not an output row of the last decode");
  return {values, static_cast<std::size_t>(shape_.vocabulary)};
}

void LlamaModel::use_threads(std::int32_t threads, bool several_rows) {
  ggml_threadpool* pool = compute_threads_->pool(threads, several_rows);
  if (pool == pool_) return;
  pool_ = pool;
  threads_ = threads;
  // libllama puts the threads of the pool before to sleep.
  llama_attach_threadpool(context_, pool, pool);
  llama_set_n_threads(context_, threads, threads);
  if (heads_) heads_->use_threads(pool, threads);
}

}  // namespace chasqui
