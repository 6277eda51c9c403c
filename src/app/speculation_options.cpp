#include "app/speculation_options.h"

#include "app/option_kinds.h"
#include "base/limits.h"

namespace chasqui {
namespace {

const std::map<std::string, bool> kKinds = {{"none", false}, {"ngram", true}};

}  // namespace

void add_speculation_options(CLI::App& app, SpeculationOptions& options) {
  const std::string group = "Context and speed";
  add_choice(app, "--spec-type", options.on, kKinds,
             "how next tokens are guessed, to be checked together: from what was said before, or not at all")
      ->envname("LLAMA_ARG_SPEC_TYPE")
      ->default_str("ngram")
      ->group(group);
  app.add_option("--spec-draft-n-max,--draft-max", options.most,
                 "guesses of a sequence that a step may check; it checks as many as pay")
      ->envname("LLAMA_ARG_SPEC_DRAFT_N_MAX")
      ->check(CLI::Range(1, static_cast<int>(kCountLimit<"guesses">)))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
}

}  // namespace chasqui
