// Which texts a string of JSON may hold: regular expressions that it matches, others that it does not, how many
// characters it has. Written as rules of GBNF: the product of all automata, made deterministic, a rule for each state.
// Any thread.
//
// bounded: states by kLanguageStatesMax, the work by kLanguageWorkMax.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/grammar/rule_text.h"
#include "model/grammar/text_pattern.h"

namespace chasqui {

struct TextLanguage {
  std::vector<std::shared_ptr<const TextPattern>> must;
  std::vector<std::shared_ptr<const TextPattern>> must_not;
  std::uint32_t least = 0;  // characters
  std::uint32_t most = GbnfPart::kNoLimit;

  bool is_any() const { return must.empty() && must_not.empty() && least == 0 && most == GbnfPart::kNoLimit; }
  bool has(std::string_view text) const;
};

enum class Written : std::uint8_t { yes, nothing_fits, too_large };

// What stands between the quotes; `out` becomes an expression of GBNF. nothing_fits: there is no such text that JSON
// can hold without \uXXXX.
Written write_text_language(const TextLanguage& language, RuleText& rules, std::string& out);

// A character of a string of JSON text in any of its forms: the rule that texts without patterns are made of.
std::string any_json_character(RuleText& rules);

}  // namespace chasqui
