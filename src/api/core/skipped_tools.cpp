#include "api/core/skipped_tools.h"

#include <algorithm>

#include "base/log.h"

namespace chasqui {
namespace {

constexpr std::size_t kTypesToldMax = 8;
constexpr std::size_t kTypeBytesMax = 64;

// As it may stand in a header and in a log.
std::string shown_type(std::string_view type) {
  std::string out(type.substr(0, kTypeBytesMax));
  std::ranges::replace_if(
      out, [](char c) { return c <= ' ' || c > '~' || c == ','; }, '?');
  return out;
}

// "#/properties/a contains", as it may stand in a header.
std::string shown_keyword(std::string_view keyword) {
  constexpr std::size_t kKeywordBytesMax = 160;
  std::string out(keyword.substr(0, kKeywordBytesMax));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~' || c == ','; }, '?');
  return out;
}

}  // namespace

bool skip_tool(const boost::json::value& tool, std::string_view served, std::vector<std::string>& skipped) {
  const boost::json::object* object = tool.if_object();
  const boost::json::value* type = object != nullptr ? object->if_contains("type") : nullptr;
  if (type == nullptr || !type->is_string() || type->get_string() == served) return false;
  std::string shown = shown_type(std::string_view(type->get_string()));
  if (std::ranges::find(skipped, shown) == skipped.end()) skipped.push_back(std::move(shown));
  return true;
}

std::string skipped_warning(const std::vector<std::string>& types) {
  std::string out;
  for (std::size_t i = 0; i < std::min(types.size(), kTypesToldMax); ++i) out += (i > 0 ? ", " : "") + types[i];
  if (types.size() > kTypesToldMax) out += " and others";
  return out.empty() ? out : "skipped tools of types that this server does not have: " + out;
}

std::string dropped_warning(const std::vector<std::string>& keywords) {
  std::string out;
  for (std::size_t i = 0; i < std::min(keywords.size(), kTypesToldMax); ++i) {
    out += (i > 0 ? ", " : "") + shown_keyword(keywords[i]);
  }
  if (keywords.size() > kTypesToldMax) out += " and others";
  return out.empty() ? out : "keywords of the schema that the answer may not keep to: " + out;
}

void SkippedTools::log_dropped(const std::vector<std::string>& keywords) {
  for (const std::string& keyword : keywords) {
    if (keywords_.size() >= kCountLimit<"skipped_types">) return;
    // Where it stands says little to an operator, and clients choose it.
    const std::string name = shown_keyword(std::string_view(keyword).substr(keyword.rfind(' ') + 1));
    if (keywords_.insert(name).second) {
      log_warning("keywords of schemas that are not supported are left out", {{"keyword", name}});
    }
  }
}

void SkippedTools::log_new(const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    if (logged_.size() >= kCountLimit<"skipped_types">) return;
    if (logged_.insert(type).second)
      log_warning("tools of a type that this server does not have are skipped", {{"type", type}});
  }
}

}  // namespace chasqui
