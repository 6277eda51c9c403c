// GBNF that is being written: rules with names of their own making. Rules of one body are one rule, so that equal parts
// of what is described are compiled once, and automata that are written from their ends lose the states that no text
// tells apart. Lives as long as one grammar is written; one thread.
//
// bounded: by `grammar_made_bytes` and `grammar_rules`; what comes later is left out, and too_large() says so.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace chasqui {

class RuleText {
 public:
  // The name of the rule with that body.
  std::string rule(const std::string& body);
  // A name whose body comes later, by define().
  std::string reserve();
  void define(const std::string& name, const std::string& body);

  bool too_large() const { return too_large_; }
  // All rules, the first of which is `root`.
  std::string text(const std::string& root) const;

 private:
  std::unordered_map<std::string, std::string> names_;  // by body
  std::string rules_;
  std::size_t count_ = 0;
  bool too_large_ = false;
};

// As a literal of GBNF.
std::string gbnf_literal(std::string_view text);
// `what`, so many times; kNoLimit of GbnfPart for no upper limit. Empty where that is nothing at all.
std::string gbnf_times(const std::string& what, std::uint32_t least, std::uint32_t most);
// `text` as a string of JSON text, with its quotes.
std::string json_text_of(std::string_view text);

}  // namespace chasqui
