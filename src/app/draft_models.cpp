#include "app/draft_models.h"

#include <algorithm>
#include <cstdlib>

#include "app/capacity.h"
#include "model/sleepy_model.h"

namespace chasqui {
namespace {

// Tokens that one vocabulary may have at its end and the other not: padding, mostly.
constexpr TokenCount kSizesApart = 128;
// Rows that it reads at once; more would keep streams waiting.
constexpr TokenCount kDraftRows = 512;

Result<void> check_words(const LoadedModel& model, const LoadedModel& draft) {
  const Tokenizer& words = *model.tokenizer;
  const Tokenizer& others = *draft.tokenizer;
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
  if (!draft.info.trims_anywhere()) return refuse("and memory that can take back what was guessed wrong");
  return {};
}

}  // namespace

Result<Models> make_drafts(const ServeConfig& config, const LoadedModel& model, const ModelConfig& part) {
  Models drafts;
  if (!config.speculation.drafts() || !model.info.trims_anywhere()) return drafts;
  if (config.speculation.draft_model.empty()) {
    return invalid_field("--spec-type", "--spec-type draft needs a model that guesses: --model-draft FILE");
  }
  LoadOptions options;
  options.weights.gpu_layers = config.gpu_layers;
  options.weights.mmap = config.use_mmap;
  options.sleeps = config.operation.sleep_after > Duration::zero();
  const auto draft = load_llama(config.speculation.draft_model, options);
  if (!draft) return draft.error();
  if (auto same = check_words(model, *draft); !same) return same.error();
  ModelConfig context = part;
  context.threads = 0;
  context.threads_batch = 0;
  context.outputs_max = part.slots;
  context.rows_max = std::max(kDraftRows, 2 * part.slots);
  context = with_capacity(context, draft->info, default_threads(), config.workers);
  const auto make = [&make_context = draft->make, &context] { return make_context(context); };
  for (std::int32_t i = 0; i < config.workers; ++i) {
    auto made = options.sleeps ? SleepyModel::start([make = draft->make, context] { return make(context); }) : make();
    if (!made) return made.error();
    drafts.push_back(std::move(*made));
  }
  return drafts;
}

}  // namespace chasqui
