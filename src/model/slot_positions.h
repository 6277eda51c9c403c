// Where the places of a slot's prompt are in the positions that libllama counts. They are the same until a picture
// whose positions have several dimensions (M-RoPE): it has a place for each of its parts, and what follows it is only
// as much further on as the picture is wide or high. Owned by a LlamaModel, one for each slot; worker thread only.
//
// All that a picture has may lie on one position, so that libllama can forget all of it or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/media.h"
#include "core/types.h"

namespace chasqui {

class SlotPositions {
 public:
  // Of a row in this place, or of a unit that begins there. REQUIRES: the slot holds no unit that it lies in
  TokenCount position(TokenCount place) const;
  // How many places a slot has whose last position is this one; -1: it is empty.
  TokenCount places(TokenCount last_position) const;

  // Whether the rows before `place` of a unit that begins at `begin` are here.
  bool has_read(TokenCount begin, TokenCount place) const;
  // The rows of the unit before `end` are here now. REQUIRES: unit.advance > 0
  void read(const MediaUnit& unit, TokenCount end);
  // Whether what the slot holds ends at `place`, with a part of a unit: there is nothing to cut off.
  bool ends_inside(TokenCount place) const;
  // `keep`, or where the unit begins that would be cut there.
  TokenCount whole(TokenCount keep) const;
  // REQUIRES: keep == whole(keep)
  void trim(TokenCount keep);
  void clear() { units_.clear(); }

  // Behind a copy of the slot.
  std::size_t bytes() const;
  void write(std::span<std::byte> to) const;
  // What write() has put at the end of these bytes; nothing: it has not.
  static std::optional<SlotPositions> of_copy(std::span<const std::byte> bytes);

 private:
  struct Unit {
    std::int32_t begin = 0;
    std::int32_t places = 0;
    std::int32_t advance = 0;
    std::int32_t read = 0;  // places that are here

    std::int32_t end() const { return begin + places; }
  };
  std::vector<Unit> units_;  // ascending; only of the last one a part may be here
};

}  // namespace chasqui
