// A grammar in llama.cpp's notation (GBNF), read into a tree: rules, literals, character classes, groups, repetitions,
// comments and tokens. A value; any thread. Follows the notation as libllama reads it, with errors that name the line
// and the rule.
//
// bounded: nesting by `grammar_nesting`, rules by `grammar_rules`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/types.h"

namespace chasqui {

struct CodeRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct GbnfPart {
  enum class Kind : std::uint8_t { text, characters, rule, token, choice, sequence, repeat };
  static constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

  Kind kind = Kind::text;
  std::string text = {};               // text: UTF-8
  std::vector<CodeRange> ranges = {};  // characters: sorted, disjoint, Unicode characters only, without U+0000
  std::uint32_t rule = 0;              // rule: index into Gbnf::rules
  Token token = 0;                     // token
  bool inverse = false;                // token: any other one
  std::vector<GbnfPart> parts = {};    // choice, sequence; repeat: one
  std::uint32_t least = 1;             // repeat
  std::uint32_t most = 1;              // repeat
};

struct GbnfRule {
  std::string name;
  GbnfPart body;
  bool defined = false;
};

struct Gbnf {
  std::vector<GbnfRule> rules;
  std::uint32_t root = 0;
};

// The token that is written as `<name>`, if the vocabulary has one.
using TokenByName = std::function<std::optional<Token>(std::string_view)>;

// Errors name `grammar`.
Result<Gbnf> parse_gbnf(std::string_view text, const TokenByName& token_by_name = {});

}  // namespace chasqui
