// What a parser of llama-common's, which it makes for the answers to one request, says about the texts in them. A plain
// value, found once for each request.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <string>

class common_peg_arena;

namespace chasqui {

struct PegAnatomy {
  struct Bytes {
    std::array<bool, 256> set{};
    void add(char c) { set[static_cast<unsigned char>(c)] = true; }
    bool has(char c) const { return set[static_cast<unsigned char>(c)]; }
  };

  bool parses = false;         // there is more in it than content
  std::set<std::string> free;  // tags whose text is whatever comes until a marker
  Bytes markers;               // bytes that a marker may begin with
  Bytes json;                  // bytes that mean something in a JSON string

  static PegAnatomy of(const common_peg_arena& arena);
};

}  // namespace chasqui
