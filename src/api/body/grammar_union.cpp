#include "api/body/grammar_union.h"

#include <algorithm>

#include "base/ascii.h"

namespace chasqui {
namespace {

bool is_name(char c) { return is_ascii_word_or("-_", c); }

// The end of what begins at `at` and holds no names of rules: a string, a class, a count, a token or a comment.
std::size_t end_of_opaque(std::string_view text, std::size_t at) {
  const char begin = text[at];
  if (begin == '#') return std::min(text.find('\n', at), text.size());
  const char end = begin == '"' ? '"' : begin == '[' ? ']' : begin == '{' ? '}' : '>';
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == end) {
      return i + 1;
    }
  }
  return text.size();
}

void append_prefixed(std::string_view text, std::string_view prefix, std::string& out) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (std::string_view("\"[{<#").find(text[at]) != std::string_view::npos) {
      end = end_of_opaque(text, at);
    } else if (is_name(text[at])) {
      while (end < text.size() && is_name(text[end])) ++end;
      out += prefix;
    }
    out += text.substr(at, end - at);
    at = end;
  }
}

}  // namespace

std::string grammar_of_either(std::string_view first, std::string_view second) {
  std::string out = "root ::= one-root | two-root\n";
  append_prefixed(first, "one-", out);
  out += '\n';
  append_prefixed(second, "two-", out);
  return out;
}

}  // namespace chasqui
