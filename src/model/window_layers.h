// How much of a KV cache a sliding window saves: layers that see a window only have cells for it and one batch. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace chasqui {

// How many of `layers` see the window only. `every`: one in so many sees everything, where the file says so
// (attention.sliding_window_pattern); else as libllama takes the architecture. 0 where neither is known, so that a
// prediction is rather too large.
std::int64_t window_layers(std::string_view architecture, std::int64_t layers, std::optional<std::int64_t> every);

// What one slot of `cells` takes.
struct KvSize {
  std::uint64_t bytes_per_cell = 0;         // in layers that see everything
  std::uint64_t window_bytes_per_cell = 0;  // … and in those that see a window
  std::uint64_t window_cells = 0;           // of a slot, in the latter; 0: as many as in the others

  std::uint64_t of(std::uint64_t cells) const;
  // The most cells that fit.
  std::uint64_t cells_in(std::uint64_t bytes) const;
};

// `layers` ≥ `windowed` of equal size have `bytes_per_cell` together. `window`: 0 for none, else the cells that a row
// of such a layer sees; `rows`: of a batch.
KvSize kv_size(std::uint64_t bytes_per_cell, std::int64_t layers, std::int64_t windowed, std::int64_t window,
               std::int64_t rows);

}  // namespace chasqui
