// raw_decode: libllama without a server. What it reaches is what a server could reach at most.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "raw_model.h"

int main(int argc, char** argv) {
  CLI::App app{"Runs libllama alone, in its best configuration, on the work of a load.", "raw_decode"};
  chasqui::raw::Options options;
  std::string layout = "stream";
  bool curve = false, moves = false;
  app.add_option("-m,--model", options.model_path, "GGUF file")->required()->check(CLI::ExistingFile);
  app.add_option("--sequences", options.sequences, "sequences at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "rows of each prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "tokens of each answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("-t,--threads", options.threads, "compute threads; 0: one for each core")->check(CLI::Range(0, 512));
  app.add_option("--rows", options.rows, "rows of one batch")->check(CLI::Range(1, 1 << 16))->capture_default_str();
  app.add_option("--layout", layout, "a KV stream for each sequence, or one pool of cells for all")
      ->check(CLI::IsMember({"stream", "unified"}))
      ->capture_default_str();
  app.add_flag("--every-logit", options.every_logit, "read all logits of every token, as a sampler would");
  app.add_flag("--no-flash", options.no_flash, "attention without the flash kernels");
  app.add_flag("--curve", curve, "milliseconds of a step by its rows, for decode and for prefill");
  app.add_flag("--moves", moves, "what it costs to move a sequence to another slot");
  app.add_option("--depth", options.depth, "cells that each sequence holds, for --curve")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "measurements of each figure, for --curve and --moves")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--slot-cells", options.slot_cells, "KV cells of each slot; 0: what the work needs")
      ->check(CLI::Range(0, 1 << 20));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.unified = layout == "unified";
  if (curve) {
    chasqui::raw::run_curve(options);
  } else if (moves) {
    chasqui::raw::run_moves(options);
  } else {
    chasqui::raw::run_work(options);
  }
  return 0;
}
