// Where the worker writes how busy it is and the loop reads it: a Load, word by word in relaxed atomics. The words of
// one reading may be from two different steps, which estimates can stand. Owned by the Engine. One writer, any number
// of readers.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <tuple>
#include <type_traits>

#include "core/load.h"

namespace chasqui {

class LoadBoard {
 public:
  LoadBoard() { write({}); }

  void write(const Load& load) {
    const auto words = std::bit_cast<Words>(load);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
  }

  Load read() const {
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    return std::bit_cast<Load>(words);
  }

 private:
  static_assert(std::has_unique_object_representations_v<Load>, "no bytes between its words");
  using Words = std::array<std::uint64_t, sizeof(Load) / sizeof(std::uint64_t)>;

  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words_{};
};

}  // namespace chasqui
