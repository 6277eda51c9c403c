#include "app/speculation_options.h"

#include "app/option_kinds.h"
#include "base/limits.h"

namespace chasqui {
namespace {

// llama-server's words are those with a hyphen. What it does with draft heads a block at once is done by ngram
// here.
const std::map<std::string, DraftSource> kSources = {
    {"auto", DraftSource::automatic},      {"none", DraftSource::none},
    {"ngram", DraftSource::ngram},         {"draft", DraftSource::draft},
    {"draft-simple", DraftSource::draft},  {"ngram-simple", DraftSource::ngram},
    {"ngram-map-k", DraftSource::ngram},   {"ngram-map-k4v", DraftSource::ngram},
    {"ngram-mod", DraftSource::ngram},     {"ngram-cache", DraftSource::ngram},
    {"draft-eagle3", DraftSource::eagle3}, {"draft-mtp", DraftSource::mtp},
    {"eagle3", DraftSource::eagle3},       {"mtp", DraftSource::mtp},
    {"draft-dflash", DraftSource::ngram},  {"draft-dspark", DraftSource::ngram},
};

}  // namespace

void add_speculation_options(CLI::App& app, SpeculationOptions& options) {
  app.option_defaults()->group("Speculation");
  add_choice(
      app, "--spec-type", options.source, kSources,
      "source of draft tokens, which a step checks together: the draft model, heads in a file of their own, heads in "
      "the model's, what was said before, or none")
      ->envname("LLAMA_ARG_SPEC_TYPE")
      ->type_name("auto|draft|eagle3|mtp|ngram|none")
      ->default_str("auto");
  app.add_option("--model-draft,--spec-draft-model", options.draft_model,
                 "(-md) GGUF file of a drafter: a small model with the same vocabulary, or the model's EAGLE-3 heads")
      ->envname("LLAMA_ARG_SPEC_DRAFT_MODEL")
      ->type_name("FILE|NAME");
  app.add_option("--hf-repo-draft,--spec-draft-hf", options.draft_repo,
                 "(-hfd) the same in the cache of Hugging Face; nothing is downloaded")
      ->envname("LLAMA_ARG_SPEC_DRAFT_HF_REPO")
      ->type_name("REPO[:QUANT]");
  app.add_option("--spec-draft-n-max,--draft-max", options.most,
                 "draft tokens of a sequence that a step may check, 16 at most; it checks as many as pay")
      ->envname("LLAMA_ARG_SPEC_DRAFT_N_MAX")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->default_str("7, of heads 3");
  app.add_option("--spec-draft-n-min,--draft-min", options.least,
                 "draft tokens that a step checks at least, even where that makes it slower")
      ->envname("LLAMA_ARG_SPEC_DRAFT_N_MIN")
      ->check(CLI::Range(0, static_cast<int>(kCountLimit<"draft_tokens">)))
      ->type_name("N");
  app.add_option("--spec-ngram-size", options.ngram,
                 "last tokens that must have been there before, for --spec-type ngram")
      ->envname("CHASQUI_SPEC_NGRAM_SIZE")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--spec-synth-rates", options.synthetic_acceptance,
                 "for benchmarks: draft tokens count as accepted with this rate, by position; answers make no sense")
      ->envname("LLAMA_ARG_SPEC_SYNTH_RATES")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P[,P…]");
}

}  // namespace chasqui
