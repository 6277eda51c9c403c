#include "api/tool_limits.h"

#include <algorithm>
#include <string>

#include "base/limits.h"

namespace chasqui {
namespace json = boost::json;
namespace {

constexpr std::size_t kToolsMax = kSizeLimit<"tools">;
constexpr std::size_t kPropertiesMax = kSizeLimit<"schema_properties">;  // of one object
constexpr std::size_t kAllPropertiesMax = kSizeLimit<"tool_properties">;

struct Properties {
  std::size_t of_one = 0;  // the object with the most
  std::size_t in_all = 0;
};

// No deeper than a body may be nested.
void count(const json::value& value, Properties& seen) {
  if (const json::array* items = value.if_array()) {
    for (const json::value& item : *items) count(item, seen);
  } else if (const json::object* object = value.if_object()) {
    for (const auto& [name, member] : *object) {
      if (name == "properties" && member.is_object()) {
        seen.of_one = std::max(seen.of_one, member.get_object().size());
        seen.in_all += member.get_object().size();
      }
      count(member, seen);
    }
  }
}

}  // namespace

const json::array* tools_within_limits(Fields& fields, std::string_view name) {
  const json::array* const tools = fields.array(name);
  if (tools == nullptr) return nullptr;
  if (tools->size() > kToolsMax) {
    fields.refuse(name, "an array of at most " + std::to_string(kToolsMax));
    return nullptr;
  }
  Properties seen;
  for (const json::value& tool : *tools) count(tool, seen);
  if (seen.of_one <= kPropertiesMax && seen.in_all <= kAllPropertiesMax) return tools;
  fields.refuse(name, "without objects of more than " + std::to_string(kPropertiesMax) +
                          " properties in their parameters, and with at most " + std::to_string(kAllPropertiesMax) +
                          " in all");
  return nullptr;
}

}  // namespace chasqui
