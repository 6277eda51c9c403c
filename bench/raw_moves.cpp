// What it costs to move a sequence to another slot: libllama's copy of a whole stream against its saved state.
#include <cstdio>

#include "raw_model.h"

namespace chasqui::raw {
namespace {

constexpr std::int32_t kFrom = 0, kTo = 1;

struct Move {
  Samples call;         // the functions that move
  Samples next_decode;  // one row in the new slot; libllama copies streams only then
};

double decode_one(RawModel& model, std::int32_t slot, std::int32_t cells) {
  model.add_row(slot, cells, true);
  const double took = model.decode();
  model.trim(slot, cells);
  return took;
}

void copy_stream(RawModel& model, std::int32_t from, std::int32_t to) {
  llama_memory_seq_cp(model.memory(), from, to, -1, -1);
  llama_memory_seq_rm(model.memory(), from, -1, -1);
}

void move_state(RawModel& model, std::int32_t from, std::int32_t to, std::vector<std::uint8_t>& bytes) {
  bytes.resize(llama_state_seq_get_size(model.context(), from));
  llama_state_seq_get_data(model.context(), bytes.data(), bytes.size(), from);
  llama_memory_seq_rm(model.memory(), to, -1, -1);
  if (llama_state_seq_set_data(model.context(), bytes.data(), bytes.size(), to) == 0) std::printf("set_data failed\n");
  llama_memory_seq_rm(model.memory(), from, -1, -1);
}

// There and back, so that each round measures two moves of the same sequence.
template <class How>
Move measure(RawModel& model, std::int32_t cells, std::int32_t rounds, How how) {
  Move move;
  model.clear();
  model.fill(kFrom, cells);
  decode_one(model, kFrom, cells);
  for (std::int32_t round = 0; round < 2 * rounds; ++round) {
    const std::int32_t from = round % 2 == 0 ? kFrom : kTo, to = round % 2 == 0 ? kTo : kFrom;
    move.call.push_back(time_ms([&] { how(from, to); }));
    move.next_decode.push_back(decode_one(model, to, cells));
    decode_one(model, to, cells);
  }
  return move;
}

void print_move(const char* how, std::int32_t cells, const Move& move, double plain) {
  const double call = median(move.call), next = median(move.next_decode);
  std::printf("%6d  %-16s  %9.3f  %14.3f  %9.3f\n", cells, how, call, next, call + next - plain);
  std::fflush(stdout);
}

void measure_slots(const Options& options, std::int32_t slot_cells) {
  Options sized = options;
  sized.slot_cells = slot_cells;
  RawModel model(sized, options.sequences, slot_cells);
  std::printf("%d slots of %d cells\n", options.sequences, model.cells_per_slot());
  std::printf("%6s  %-16s  %9s  %14s  %9s\n", "cells", "how", "call_ms", "next_decode_ms", "extra_ms");
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t cells : {160, 1200}) {
    if (cells + 1 > model.cells_per_slot()) continue;
    Samples plain;
    model.clear();
    model.fill(kFrom, cells);
    for (std::int32_t i = 0; i < 2 * options.rounds + 1; ++i) plain.push_back(decode_one(model, kFrom, cells));
    const double base = median(plain);
    std::printf("%6d  %-16s  %9s  %14.3f\n", cells, "stays", "", base);
    if (!options.unified) {
      print_move("seq_cp + seq_rm", cells,
                 measure(model, cells, options.rounds,
                         [&](std::int32_t from, std::int32_t to) { copy_stream(model, from, to); }),
                 base);
    }
    print_move("state get + set", cells,
               measure(model, cells, options.rounds,
                       [&](std::int32_t from, std::int32_t to) { move_state(model, from, to, bytes); }),
               base);
    std::printf("        the state is %.1f MB\n", static_cast<double>(bytes.size()) / 1e6);
  }
}

}  // namespace

void run_moves(const Options& options) {
  std::printf("%s, %s layout, medians of %d moves\n", options.model_path.c_str(),
              options.unified ? "unified" : "stream", 2 * options.rounds);
  if (options.slot_cells > 0) return measure_slots(options, options.slot_cells);
  for (const std::int32_t slot_cells : {512, 2048, 4096}) measure_slots(options, slot_cells);
}

}  // namespace chasqui::raw
