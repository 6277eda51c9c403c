// What a step costs by its rows: the shape that a scheduler has to live with.
#include <algorithm>
#include <cstdio>

#include "raw_model.h"

namespace chasqui::raw {
namespace {

constexpr std::int32_t kDecodeRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
constexpr std::int32_t kChunkRows[] = {1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512};

void print_row(std::int32_t rows, const Samples& samples) {
  const double middle = median(samples);
  std::printf("%6d  %9.2f  %9.2f  %11.3f  %9.1f\n", rows, middle, smallest(samples), middle / rows,
              1e3 * rows / middle);
  std::fflush(stdout);
}

void print_head(const char* what) {
  std::printf("%s\n%6s  %9s  %9s  %11s  %9s\n", what, "rows", "median_ms", "min_ms", "ms_per_row", "rows_per_s");
}

// One row in each of `rows` sequences, each `depth` cells long.
Samples decode_steps(RawModel& model, std::int32_t rows, const Options& options) {
  Samples samples;
  for (std::int32_t round = -1; round < options.rounds; ++round) {
    for (std::int32_t slot = 0; slot < rows; ++slot) model.add_row(slot, options.depth, true);
    const double took = model.decode();
    if (round >= 0) samples.push_back(took);  // the first builds the graph
    for (std::int32_t slot = 0; slot < rows; ++slot) model.trim(slot, options.depth);
  }
  return samples;
}

// `rows` rows of one prompt, no output, after `depth` cells.
Samples prefill_chunks(RawModel& model, std::int32_t rows, const Options& options) {
  Samples samples;
  for (std::int32_t round = -1; round < options.rounds; ++round) {
    for (std::int32_t i = 0; i < rows; ++i) model.add_row(0, options.depth + i, false);
    const double took = model.decode();
    if (round >= 0) samples.push_back(took);
    model.trim(0, options.depth);
  }
  return samples;
}

}  // namespace

void run_curve(const Options& options) {
  const std::int32_t slots = 64;
  RawModel model(options, slots, options.depth + 512);
  std::printf("%s, %s layout, %d threads, sequences of %d cells, %d measurements each\n", options.model_path.c_str(),
              options.unified ? "unified" : "stream", model.threads(), options.depth, options.rounds);
  model.fill(0, options.depth);
  for (std::int32_t slot = 1; slot < slots; ++slot) llama_memory_seq_cp(model.memory(), 0, slot, -1, -1);

  print_head("decode: one row in each of so many sequences");
  for (const std::int32_t rows : kDecodeRows) print_row(rows, decode_steps(model, rows, options));
  print_head("prefill: so many rows of one prompt");
  for (const std::int32_t rows : kChunkRows) {
    if (rows <= options.rows) print_row(rows, prefill_chunks(model, rows, options));
  }
}

}  // namespace chasqui::raw
