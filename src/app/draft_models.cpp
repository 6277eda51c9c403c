#include "app/draft_models.h"

#include <algorithm>
#include <cstdlib>

#include "app/capacity.h"
#include "app/rpc_peers.h"
#include "app/settings.h"
#include "base/log.h"
#include "model/gguf_summary.h"
#include "model/llama_heads.h"
#include "model/llama_params.h"
#include "model/llama_tokenizer.h"
#include "model/sleepy_model.h"

namespace chasqui {
namespace {

// Tokens that one vocabulary may have at its end and the other not: padding, mostly.
constexpr TokenCount kSizesApart = 128;
// Rows that it reads at once; more would keep streams waiting.
constexpr TokenCount kDraftRows = 512;

Result<void> check_words(const Tokenizer& words, const Tokenizer& others) {
  const TokenCount apart = words.vocabulary() - others.vocabulary();
  const auto refuse = [](const std::string& why) {
    return invalid_field("--model-draft", "--model-draft must have the vocabulary of the model: " + why);
  };
  if (std::abs(apart) > kSizesApart) {
    return refuse("it has " + std::to_string(others.vocabulary()) + " tokens, the model " +
                  std::to_string(words.vocabulary()));
  }
  for (Token token = 0; token < std::min(words.vocabulary(), others.vocabulary()); ++token) {
    if (words.special_piece(token) == others.special_piece(token)) continue;
    return refuse("token " + std::to_string(token) + " is another one");
  }
  return {};
}

WeightsOptions how_to_load(const ServeConfig& config) {
  WeightsOptions options;
  options.gpu_layers = config.gpu_layers;
  options.mmap = config.use_mmap;
  options.draft = true;
  options.on_trial = config.on_trial;
  options.llama = config.llama;
  follow_peers(options);
  return options;
}

}  // namespace

Result<void> find_drafter(SpeculationOptions& options) {
  if (options.source != DraftSource::automatic || options.draft_model.empty()) return {};
  const auto file = summarize_gguf(options.draft_model);
  if (!file) return invalid_field("--model-draft", "--model-draft: " + file.error().message);
  if (file->architecture == "eagle3") options.source = DraftSource::eagle3;
  return {};
}

Result<HeadsConfig> choose_heads(const ServeConfig& config, const LoadedModel& model) {
  HeadsConfig heads;
  const bool own = config.speculation.source == DraftSource::mtp;
  if (!config.speculation.heads() || (!own && !model.info.trims_anywhere())) return heads;
  heads.draft_tokens = config.speculation.draft_tokens_max();
  if (own) {
    if (!has_usable_heads(model.info)) {
      return invalid_field("--spec-type", "--spec-type mtp: the model has no such heads that libllama can use");
    }
    heads.own = true;
    log_info("heads of the model draft token", {{"draft_tokens", heads.draft_tokens}});
    return heads;
  }
  if (config.speculation.draft_model.empty()) {
    return invalid_field("--spec-type", "--spec-type eagle3 needs the file of the heads: --model-draft FILE");
  }
  auto weights = load_heads(config.speculation.draft_model, how_to_load(config), model.info);
  if (!weights) return invalid_field("--model-draft", "--model-draft: " + weights.error().message);
  if (auto same = check_words(*model.tokenizer, LlamaTokenizer(*weights)); !same) return same.error();
  heads.weights = std::move(*weights);
  log_info("heads draft token", {{"file", config.speculation.draft_model}, {"draft_tokens", heads.draft_tokens}});
  return heads;
}

TokenCount wanted_rollback(const SpeculationOptions& options, bool trims_anywhere) {
  return trims_anywhere || options.source == DraftSource::eagle3 ? 0 : options.draft_tokens_max();
}

void warn_of_no_rollback(const SpeculationOptions& options, const ModelShape& shape) {
  if (options.draft_tokens_max() == 0 || shape.trims_anywhere || shape.rollback > 0) return;
  if (options.source == DraftSource::eagle3) {
    log_warning("speculative decoding is off: EAGLE-3 heads are not used for models whose memory is partly a state");
    return;
  }
  log_warning("speculative decoding is off: the memory of this model cannot take back rejected draft tokens");
}

Result<Models> make_drafts(const ServeConfig& config, const LoadedModel& model, const ModelConfig& part,
                           const ModelShape& shape) {
  Models drafts;
  if (!config.speculation.drafts() || (!shape.trims_anywhere && shape.rollback == 0)) return drafts;
  if (config.speculation.draft_model.empty()) {
    return invalid_field("--spec-type", "--spec-type draft needs a draft model: --model-draft FILE");
  }
  LoadOptions options;
  options.weights = how_to_load(config);
  options.sleeps = can_sleep(config);
  const auto draft = load_llama(config.speculation.draft_model, options);
  if (!draft) return draft.error();
  if (auto same = check_words(*model.tokenizer, *draft->tokenizer); !same) return same.error();
  if (!draft->info.trims_anywhere()) {
    return invalid_field("--model-draft", "--model-draft must have memory that can take back rejected draft tokens");
  }
  ModelConfig context = with_draft_flags(part, config.llama);
  context.outputs_max = part.slots;
  context.rollback = 0;
  context.rows_max = std::max(kDraftRows, 2 * part.slots);
  context = with_capacity(context, draft->info, 0, config.workers);  // slots and cells are as the model's
  const auto make = [&make_context = draft->make, &context] { return make_context(context); };
  for (std::int32_t i = 0; i < config.workers; ++i) {
    auto made = options.sleeps ? SleepyModel::start([make = draft->make, context] { return make(context); }) : make();
    if (!made) return made.error();
    drafts.push_back(std::move(*made));
  }
  return drafts;
}

}  // namespace chasqui
