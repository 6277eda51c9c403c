// Where libllama keeps the KV of a slot, so that ranges of positions can be copied out and in, and without what is
// around them in a state. It is read off what libllama's own functions for states do with a slot (TensorCopyRecorder),
// for memories of plain attention only: one row of each tensor for each position, or one element of each row where V is
// transposed. Owned by a LlamaModel; worker thread only.
//
// A block of n positions holds n times the bytes of each *strand*, one strand behind the other: a strand is the row of
// one tensor, or an element of it, and has a fixed number of bytes for each position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/kv_snapshot.h"
#include "core/types.h"
#include "model/llama_tensor_copies.h"

struct ggml_tensor;
struct llama_context;

namespace chasqui {

class LlamaKvLayout {
 public:
  // Nothing where the memory of the context is not of that kind, or libllama's copies cannot be seen; or where what is
  // copied in and out again in blocks is not what libllama says of it. The slot is empty afterwards.
  // REQUIRES: the slot holds one position, 0
  static std::optional<LlamaKvLayout> find(llama_context* context, SlotId slot);

  // Of what a slot holds, until it changes.
  struct Place {
    std::vector<ggml_tensor*> tensors;  // one for each strand
    std::vector<std::uint32_t> cells;   // one for each position
  };
  // Nothing: it holds something else than `tokens` positions from 0 on.
  std::optional<Place> place_of(llama_context* context, SlotId slot, TokenCount tokens) const;
  // Gives an empty slot the positions 0 … tokens-1, whose KV is still to be copied in. Nothing: there is no room.
  std::optional<Place> make_place(llama_context* context, SlotId slot, TokenCount tokens) const;

  // The positions from `from` on, as many as the block has.
  void copy_out(const Place& place, TokenCount from, TokenCount count, std::span<std::byte> block) const;
  // The first `count` positions of a block that has `tokens` of them.
  void copy_in(const Place& place, TokenCount from, TokenCount count, std::span<const std::byte> block,
               TokenCount tokens) const;

  std::size_t bytes_per_token() const { return bytes_per_token_; }
  // Of a block: enough that one is no small piece of memory.
  TokenCount block_tokens() const;

 private:
  struct Strand {
    std::size_t bytes = 0;  // for each position
    std::size_t base = 0;   // of cell 0 in its tensor
    bool operator==(const Strand&) const = default;
  };
  struct State;
  struct Run {
    std::uint32_t cell = 0;
    TokenCount count = 0;
  };

  LlamaKvLayout() = default;
  using CellRanges = std::vector<std::pair<std::uint32_t, TokenCount>>;  // first cell, and how many
  static CellRanges ranges_of(const std::vector<TensorCopy>& copies, std::size_t row, TokenCount tokens);
  static std::size_t read_strands(const std::vector<TensorCopy>& copies, const CellRanges& ranges,
                                  std::span<const std::byte> bytes, std::size_t end, State& state);
  static std::optional<State> state_of(llama_context* context, SlotId slot, TokenCount tokens);
  bool learn(State& state);
  bool verify(llama_context* context, SlotId slot) const;
  static std::vector<Run> runs_of(const Place& place, TokenCount from, TokenCount count);

  std::uint32_t magic_ = 0;
  std::uint32_t streams_ = 0;
  std::vector<Strand> strands_;
  std::vector<std::vector<std::byte>> before_;  // what a state has before the bytes of each strand
  std::size_t bytes_per_token_ = 0;
};

}  // namespace chasqui
