#include "model/grammar/rule_text.h"

#include <cstdio>

#include "base/limits.h"
#include "model/grammar/gbnf.h"

namespace chasqui {
namespace {

constexpr std::size_t kWrittenBytesMax = kSizeLimit<"grammar_made_bytes">;
constexpr std::size_t kWrittenRulesMax = kSizeLimit<"grammar_rules"> - 1;

}  // namespace

std::string RuleText::rule(const std::string& body) {
  const auto found = names_.find(body);
  if (found != names_.end()) return found->second;
  std::string name = reserve();
  define(name, body);
  if (!too_large_) names_.emplace(body, name);
  return name;
}

std::string RuleText::reserve() {
  if (++count_ > kWrittenRulesMax) too_large_ = true;
  return 'r' + std::to_string(count_);
}

void RuleText::define(const std::string& name, const std::string& body) {
  if (rules_.size() + name.size() + body.size() + 6 > kWrittenBytesMax) too_large_ = true;
  if (!too_large_) rules_ += name + " ::= " + body + '\n';
}

std::string RuleText::text(const std::string& root) const { return "root ::= " + root + '\n' + rules_; }

std::string gbnf_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      char written[8];
      std::snprintf(written, sizeof written, "\\x%02X", byte);
      out += written;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string gbnf_times(const std::string& what, std::uint32_t least, std::uint32_t most) {
  if (most == 0) return "";
  if (least == 1 && most == 1) return what;
  if (least == 0 && most == 1) return what + '?';
  if (most == GbnfPart::kNoLimit && least < 2) return what + (least == 0 ? '*' : '+');
  std::string out = what + '{' + std::to_string(least);
  if (most != least) out += most == GbnfPart::kNoLimit ? "," : ',' + std::to_string(most);
  return out + '}';
}

std::string json_text_of(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f') {
      out += '\\';
      out += c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '\b' ? 'b' : 'f';
    } else if (byte < 0x20) {
      char written[8];
      std::snprintf(written, sizeof written, "\\u%04x", byte);
      out += written;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace chasqui
