// The work of a load without a server: every prompt is read, then all sequences are decoded to their end together.
#include <algorithm>
#include <cstdio>

#include "raw_model.h"

namespace chasqui::raw {
namespace {

// Whole prompts side by side while they fit: one pass over the weights for as many rows as a batch can take.
double read_prompts(RawModel& model, const Options& options) {
  double took = 0;
  for (std::int32_t slot = 0; slot < options.sequences; ++slot) {
    if (model.rows_waiting() > 0 && model.rows_waiting() + options.prompt > options.rows) took += model.decode();
    for (std::int32_t position = 0; position < options.prompt; ++position) {
      model.add_row(slot, position, position + 1 == options.prompt);
      if (model.rows_waiting() >= options.rows) took += model.decode();
    }
  }
  if (model.rows_waiting() > 0) took += model.decode();
  return took;
}

}  // namespace

void run_work(const Options& options) {
  RawModel model(options, options.sequences, options.prompt + options.tokens);
  const double prefill_ms = read_prompts(model, options);
  // The prompt's last row gave the first token already.
  Samples steps;
  double decode_ms = 0;
  for (std::int32_t step = 0; step + 1 < options.tokens; ++step) {
    for (std::int32_t slot = 0; slot < options.sequences; ++slot) model.add_row(slot, options.prompt + step, true);
    steps.push_back(model.decode());
    decode_ms += steps.back();
  }
  const double decoded = static_cast<double>(steps.size()) * options.sequences;
  const double all = static_cast<double>(options.tokens) * options.sequences;
  std::printf("%d sequences, %d prompt rows and %d tokens each, %s layout, %d threads\n", options.sequences,
              options.prompt, options.tokens, options.unified ? "unified" : "stream", model.threads());
  std::printf("prefill_s              %.3f\n", prefill_ms / 1e3);
  std::printf("prefill_rows_per_s     %.1f\n", 1e3 * options.prompt * options.sequences / prefill_ms);
  std::printf("decode_tokens_per_s    %.1f\n", decode_ms > 0 ? 1e3 * decoded / decode_ms : 0.0);
  std::printf("step_ms_median         %.2f\n", median(steps));
  std::printf("total_tokens_per_s     %.1f\n", 1e3 * all / (prefill_ms + decode_ms));
}

}  // namespace chasqui::raw
