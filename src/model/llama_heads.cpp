#include "model/llama_heads.h"

#include <algorithm>
#include <exception>
#include <span>
#include <string_view>

#include <common.h>
#include <gguf.h>
#include <llama.h>
#include <speculative.h>

#include "base/log.h"
#include "model/gguf_handle.h"
#include "model/gguf_summary.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

constexpr const char* kArchitecture = "eagle3";
constexpr std::size_t kLayersRead = 3;
// Of which libllama 0.5.0 computes the heads, with a KV cache that is nothing else.
constexpr std::string_view kWithOwnHeads[] = {"cohere2moe", "deepseek2", "glm4moe", "hy_v3", "mimo2", "step35"};
// … and whose own memory is partly a state that it takes back (not that of qwen3next). It ends the process where these
// have more than one layer that drafts.
constexpr std::string_view kWithOneHead[] = {"qwen35", "qwen35moe"};

// libllama throws where it has no memory for what it computes in: the answers go on without draft tokens then.
template <class Computing>
void compute_with_heads(const Computing& computing) {
  try {
    computing();
  } catch (const std::exception& e) {
    log_warning("the draft heads failed", {{"reason", e.what()}});
  }
}

// libllama ends the process where these do not fit.
Result<void> check_shape(const std::string& path, const ModelInfo& model) {
  const auto refuse = [&path](const std::string& why) {
    return invalid_field("heads", path + " has no heads for this model: " + why);
  };
  const GgufHandle gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (!gguf) return refuse("it is not a GGUF file");
  const auto number = [&gguf](const std::string& key) -> std::int64_t {
    const std::int64_t id = gguf_find_key(gguf.get(), (std::string(kArchitecture) + "." + key).c_str());
    return id < 0 || gguf_get_kv_type(gguf.get(), id) != GGUF_TYPE_UINT32 ? -1 : gguf_get_val_u32(gguf.get(), id);
  };
  if (const std::int64_t width = number("target_hidden_size"); width != model.embedding_length) {
    return refuse("they read states of width " + std::to_string(width) + ", the model has " +
                  std::to_string(model.embedding_length));
  }
  if (number("block_count") != 1) return refuse("they are not a single layer");
  const std::int64_t id = gguf_find_key(gguf.get(), (std::string(kArchitecture) + ".target_layers").c_str());
  const bool whole = id >= 0 && gguf_get_kv_type(gguf.get(), id) == GGUF_TYPE_ARRAY;
  const gguf_type type = whole ? gguf_get_arr_type(gguf.get(), id) : GGUF_TYPE_COUNT;
  if ((type != GGUF_TYPE_INT32 && type != GGUF_TYPE_UINT32) || gguf_get_arr_n(gguf.get(), id) != kLayersRead) {
    return refuse("they do not name three layers to read");
  }
  const std::span layers(static_cast<const std::uint32_t*>(gguf_get_arr_data(gguf.get(), id)), kLayersRead);
  for (const std::uint32_t layer : layers) {
    if (layer > static_cast<std::uint32_t>(model.layers)) {
      return refuse("they read layer " + std::to_string(layer) + ", the model has " + std::to_string(model.layers));
    }
  }
  return {};
}

}  // namespace

bool has_usable_heads(const ModelInfo& model) {
  const auto is_among = [&model](std::span<const std::string_view> names) {
    return std::ranges::find(names, model.architecture) != names.end();
  };
  return model.heads > 0 && (is_among(kWithOwnHeads) || (model.heads == 1 && is_among(kWithOneHead)));
}

Result<WeightsPtr> load_heads(const std::string& path, WeightsOptions options, const ModelInfo& model) {
  const auto summary = summarize_gguf(path);
  if (!summary) return summary.error();
  if (summary->architecture != kArchitecture) {
    return invalid_field("heads", path + " has no EAGLE-3 heads: it is of the architecture " + summary->architecture);
  }
  if (auto fits = check_shape(path, model); !fits) return fits.error();
  options.heads = true;
  return LlamaWeights::from_file(path, options);
}

LlamaHeads::LlamaHeads(const LlamaWeights& model, const HeadsConfig& config, const ModelShape& shape)
    : weights_(config.weights),
      model_(model),
      draft_tokens_(config.draft_tokens),
      vocabulary_(shape.vocabulary),
      in_any_order_(shape.unified && shape.trims_anywhere),
      slots_(static_cast<std::size_t>(shape.slots)),
      rows_(shape) {}

Result<std::unique_ptr<LlamaHeads>> LlamaHeads::make(llama_context* target, const LlamaWeights& weights,
                                                     llama_context_params params, const ModelShape& shape,
                                                     const HeadsConfig& config) {
  CHECK(shape.trims_anywhere || shape.rollback >= config.draft_tokens, "rejected draft tokens have to be taken back");
  std::unique_ptr<LlamaHeads> heads(new LlamaHeads(weights, config, shape));
  if (auto opened = heads->open(target, params); !opened) return opened.error();
  return heads;
}

Result<void> LlamaHeads::open(llama_context* target, llama_context_params params) {
  const auto refuse = [](const std::string& why) {
    return Error{ErrorCode::unavailable, "Cannot make a context for the draft heads: " + why, ""};
  };
  params.n_ctx = llama_n_ctx(target);
  params.n_outputs_max = params.n_seq_max;
  params.n_rs_seq = 0;  // they keep no state
  params.ctx_other = target;
  if (!weights_) params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  take_llama_error();
  context_ = (weights_ ? *weights_ : model_).make_context(params);
  if (context_ == nullptr) return refuse(take_llama_error());
  common_params_speculative how;
  how.types = {weights_ ? COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3 : COMMON_SPECULATIVE_TYPE_DRAFT_MTP};
  how.draft.n_max = draft_tokens_;
  how.draft.ctx_tgt = target;
  how.draft.ctx_dft = context_;
  how.draft.backend_sampling = offloads_to_gpu();
  try {
    driver_ = common_speculative_init(how, params.n_seq_max);
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
  if (driver_ == nullptr) return refuse("llama-common knows no way to use them");
  draft_tokens_ = common_speculative_n_max(driver_);
  return {};
}

LlamaHeads::~LlamaHeads() {
  if (driver_ != nullptr) common_speculative_free(driver_);
  if (context_ != nullptr) llama_free(context_);
}

std::optional<SharedLock::Reading> LlamaHeads::keep_adapters() const {
  std::optional<SharedLock::Reading> kept;
  if (!weights_) kept.emplace(model_.adapters_lock());
  return kept;
}

void LlamaHeads::use_threads(ggml_threadpool* pool, std::int32_t threads) {
  llama_attach_threadpool(context_, pool, pool);
  llama_set_n_threads(context_, threads, threads);
}

void LlamaHeads::find_runs(const Batch& batch) {
  runs_.clear();
  for (const Row& row : batch.rows) {
    if (runs_.empty() || runs_.back().slot != row.slot) runs_.push_back({row.slot, row.position, 0});
    ++runs_.back().rows;
  }
}

// With a stream for each slot, or with states, libllama computes rows of unequal sequences in another order, and hands
// hidden states out in that order.
bool LlamaHeads::in_order() const {
  return in_any_order_ || std::ranges::all_of(runs_, [this](const Run& run) { return run.rows == runs_.front().rows; });
}

// A position of EAGLE-3's memory is made of a hidden state and the token after it. So the newest is open until that
// token is known: to draft() for sure, else to the next batch.
void LlamaHeads::learn(const Batch& batch) {
  find_runs(batch);
  const bool usable = in_order();
  for (const Run& run : runs_) {
    Slot& slot = at(run.slot);
    if (!usable || slot.next != run.first) {
      forget(run.slot);
    } else {
      const bool newest_is_open = weights_ && !slot.drafted;
      const TokenCount keep = run.first - (newest_is_open ? 1 : 0);
      llama_memory_seq_rm(llama_get_memory(context_), run.slot.value, std::max(keep, 0), -1);
    }
  }
  if (!usable) return;
  bool done = false;
  {
    const auto kept = keep_adapters();
    compute_with_heads([&] { done = common_speculative_process(driver_, rows_.fill(batch)); });
  }
  if (!done) log_warning("the draft heads failed; they begin anew", {{"rows", batch.rows.size()}});
  for (const Run& run : runs_) {
    if (!done) {
      forget(run.slot);
      continue;
    }
    Slot& slot = at(run.slot);
    slot.first = run.first;
    slot.next = run.first + run.rows;
    slot.drafted = false;
  }
}

void LlamaHeads::trim(SlotId id, TokenCount keep) {
  Slot& slot = at(id);
  if (slot.next < 0 || keep >= slot.next) return;
  if (keep > slot.first && takes_back(id)) {
    common_speculative_accept(driver_, id.value, static_cast<std::uint16_t>(keep - slot.first - 1));
    slot.next = keep;
    return;
  }
  llama_memory_seq_rm(llama_get_memory(context_), id.value, -1, -1);
  slot.next = -1;
  slot.drafted = false;
}

// llama-common does so only in slots for which it has drafted before. So it drafts once and drops the result.
bool LlamaHeads::takes_back(SlotId id) {
  Slot& slot = at(id);
  if (!slot.ever_drafted) {
    slot.draft_tokens.clear();
    common_speculative_get_draft_params(driver_, id.value) = {.drafting = true,
                                                              .n_max = 1,
                                                              .pos0 = slot.next,
                                                              .id_last = 0,
                                                              .prompt = &prompt_,
                                                              .result = &slot.draft_tokens};
    const auto kept = keep_adapters();
    compute_with_heads([&] { common_speculative_draft(driver_); });
    slot.ever_drafted = !slot.draft_tokens.empty();
  }
  return slot.ever_drafted;
}

bool LlamaHeads::draft(Batch& batch) {
  for (const BatchPart& part : batch.parts) {
    if (part.draft_tokens == 0) continue;
    Slot& slot = at(part.slot);
    const Row& row = batch.rows[static_cast<std::size_t>(part.last_row())];
    slot.draft_tokens.clear();
    slot.drafted = slot.next == row.position;
    if (!slot.drafted) continue;
    if (!weights_) llama_memory_seq_rm(llama_get_memory(context_), part.slot.value, row.position, -1);
    common_speculative_get_draft_params(driver_, part.slot.value) = {.drafting = true,
                                                                     .n_max = part.draft_tokens,
                                                                     .pos0 = row.position,
                                                                     .id_last = row.token,
                                                                     .prompt = &prompt_,
                                                                     .result = &slot.draft_tokens};
  }
  const auto kept = keep_adapters();
  compute_with_heads([&] { common_speculative_draft(driver_); });
  bool all = true;
  for (const BatchPart& part : batch.parts) {
    if (part.draft_tokens == 0) continue;
    Slot& slot = at(part.slot);
    slot.ever_drafted |= !slot.draft_tokens.empty();
    all &= !slot.drafted || !slot.draft_tokens.empty();
    const auto made = std::min(static_cast<std::size_t>(part.draft_tokens), slot.draft_tokens.size());
    for (std::size_t i = 0; i < made; ++i) {
      Token& token = batch.rows[static_cast<std::size_t>(part.last_row()) + 1 + i].token;
      if (slot.draft_tokens[i] >= 0 && slot.draft_tokens[i] < vocabulary_) token = slot.draft_tokens[i];
    }
  }
  return all;
}

}  // namespace chasqui
