#include "app/speculation_options.h"

#include "app/option_kinds.h"
#include "base/limits.h"

namespace chasqui {
namespace {

// llama-server's words are those with a hyphen. What it does with heads that guess a block at once is done by ngram
// here.
const std::map<std::string, GuessSource> kSources = {
    {"auto", GuessSource::automatic},      {"none", GuessSource::none},
    {"ngram", GuessSource::ngram},         {"draft", GuessSource::draft},
    {"draft-simple", GuessSource::draft},  {"ngram-simple", GuessSource::ngram},
    {"ngram-map-k", GuessSource::ngram},   {"ngram-map-k4v", GuessSource::ngram},
    {"ngram-mod", GuessSource::ngram},     {"ngram-cache", GuessSource::ngram},
    {"draft-eagle3", GuessSource::eagle3}, {"draft-mtp", GuessSource::mtp},
    {"eagle3", GuessSource::eagle3},       {"mtp", GuessSource::mtp},
    {"draft-dflash", GuessSource::ngram},  {"draft-dspark", GuessSource::ngram},
};

}  // namespace

void add_speculation_options(CLI::App& app, SpeculationOptions& options) {
  const std::string group = "Speculation";
  add_choice(app, "--spec-type", options.source, kSources,
             "who guesses next tokens, to be checked together: the draft model, heads in a file of their own, heads in "
             "the model's, what was said before, nobody")
      ->envname("LLAMA_ARG_SPEC_TYPE")
      ->type_name("auto|draft|eagle3|mtp|ngram|none")
      ->default_str("auto")
      ->group(group);
  app.add_option("--model-draft,--spec-draft-model", options.draft_model,
                 "(-md) GGUF file that guesses: a small model with the same vocabulary, or the model's EAGLE-3 heads")
      ->envname("LLAMA_ARG_SPEC_DRAFT_MODEL")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--spec-draft-n-max,--draft-max", options.most,
                 "guesses of a sequence that a step may check; it checks as many as pay")
      ->envname("LLAMA_ARG_SPEC_DRAFT_N_MAX")
      ->check(CLI::Range(1, static_cast<int>(kCountLimit<"guesses">)))
      ->type_name("N")
      ->default_str("7, of heads 3")
      ->group(group);
  app.add_option("--spec-draft-n-min,--draft-min", options.least,
                 "guesses that a step checks at least, even where that makes it slower")
      ->envname("LLAMA_ARG_SPEC_DRAFT_N_MIN")
      ->check(CLI::Range(0, static_cast<int>(kCountLimit<"guesses">)))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--spec-synth-rates", options.pretended,
                 "for benchmarks: guesses count as right with this chance, by place; answers make no sense")
      ->envname("LLAMA_ARG_SPEC_SYNTH_RATES")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P[,P…]")
      ->group(group);
}

}  // namespace chasqui
