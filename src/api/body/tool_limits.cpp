#include "api/body/tool_limits.h"

#include <algorithm>
#include <string>

#include "api/schema/schema_leaves.h"
#include "base/limits.h"

namespace chasqui {
namespace json = boost::json;
namespace {

constexpr std::size_t kToolsMax = kSizeLimit<"tools">;
constexpr std::size_t kPropertiesOfTool = kSizeLimit<"schema_properties">;  // of one object
constexpr std::size_t kAllPropertiesMax = kSizeLimit<"tool_properties">;
constexpr double kPartsMax = kCountLimit<"tool_parts">;
constexpr std::size_t kAllBytesMax = kSizeLimit<"tool_bytes">;
constexpr std::size_t kReferencesMax = kSizeLimit<"tool_references">;
constexpr std::size_t kToolPathBytesMax = kSizeLimit<"tool_path_bytes">;
constexpr std::size_t kToolNameMax = kSizeLimit<"schema_name_bytes">;
constexpr std::size_t kToolPatternMax = kSizeLimit<"pattern_bytes">;

std::string at_most(std::size_t most) { return "at most " + std::to_string(most); }

// Walks through the tools until one of the limits is exceeded. Each value is visited once: linear in the body.
class ToolMeasure {
 public:
  // What the tools must be; empty while they are within the limits.
  const std::string& refusal() const { return refusal_; }

  void measure(const json::value& tool) {
    walk(tool, 1, 0);
    if (const json::object* object = tool.if_object()) {
      measure_name(*object);
      const json::value* function = object->if_contains("function");
      if (function != nullptr && function->is_object()) measure_name(function->get_object());
    }
  }

 private:
  void refuse(std::string what) {
    if (refusal_.empty()) refusal_ = std::move(what);
  }

  void measure_name(const json::object& tool) {
    const json::value* name = tool.if_contains("name");
    if (name == nullptr || !name->is_string()) return;
    if (name->get_string().size() > kToolNameMax) refuse("with names of " + at_most(kToolNameMax) + " bytes");
  }

  // `times`: how often the converter comes here, which copies a schema for each of the types that it lists. `path`:
  // bytes of the names on the way here, of which it makes the name of a rule. No deeper than a body may be nested.
  void walk(const json::value& value, double times, std::size_t path) {
    parts_ += times;
    if (parts_ > kPartsMax) refuse("with " + at_most(kSizeLimit<"tool_parts">) + " JSON values in all");
    if (!refusal_.empty()) return;
    if (const json::array* items = value.if_array()) {
      for (const json::value& item : *items) walk(item, times, path + 1);
    } else if (const json::object* object = value.if_object()) {
      const json::value* type = object->if_contains("type");
      const json::array* types = type != nullptr ? type->if_array() : nullptr;
      if (types != nullptr && types->size() > kTypesMax) refuse("with " + at_most(kTypesMax) + " types in a list");
      if (types != nullptr) times *= static_cast<double>(std::max<std::size_t>(types->size(), 1));
      path_bytes_ += times * static_cast<double>(path);
      if (path_bytes_ > kToolPathBytesMax) {
        refuse("with shorter names, or nested less: the paths to all of their parts have " +
               at_most(kToolPathBytesMax) + " bytes together");
      }
      for (const auto& [name, member] : *object) walk_member(name, member, times, path + name.size() + 1);
    } else if (const json::string* text = value.if_string()) {
      add_bytes(text->size());
    }
  }

  void walk_member(std::string_view name, const json::value& member, double times, std::size_t path) {
    if (name.size() > kToolNameMax) refuse("with names of " + at_most(kToolNameMax) + " bytes");
    add_bytes(name.size());
    if (member.is_string()) {
      const std::size_t size = member.get_string().size();
      if (name == "$ref" && size > kToolNameMax) refuse("with a $ref of " + at_most(kToolNameMax) + " bytes");
      if (name == "$ref" && ++references_ > kReferencesMax) refuse("with " + at_most(kReferencesMax) + " $ref in all");
      if (name == "pattern" && size > kToolPatternMax)
        refuse("with a pattern of " + at_most(kToolPatternMax) + " bytes");
    }
    if (name == "properties" && member.is_object()) {
      const std::size_t count = member.get_object().size();
      properties_ += count;
      if (count > kPropertiesOfTool || properties_ > kAllPropertiesMax) {
        refuse("without objects of more than " + std::to_string(kPropertiesOfTool) +
               " properties in their parameters, and with " + at_most(kAllPropertiesMax) + " in all");
      }
    }
    walk(member, times, path);
  }

  void add_bytes(std::size_t count) {
    bytes_ += count;
    if (bytes_ > kAllBytesMax) {
      refuse("with names and texts of " + at_most(kAllBytesMax) + " bytes in all");
    }
  }

  std::string refusal_;
  double parts_ = 0;
  double path_bytes_ = 0;
  std::size_t bytes_ = 0;
  std::size_t properties_ = 0;
  std::size_t references_ = 0;
};

}  // namespace

const json::array* tools_within_limits(Fields& fields, std::string_view name) {
  const json::array* const tools = fields.array(name);
  if (tools == nullptr) return nullptr;
  if (tools->size() > kToolsMax) {
    fields.refuse(name, "an array of at most " + std::to_string(kToolsMax));
    return nullptr;
  }
  ToolMeasure measure;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    measure.measure((*tools)[i]);
    if (measure.refusal().empty()) continue;
    fields.refuse(std::string(name) + '[' + std::to_string(i) + ']', measure.refusal());
    return nullptr;
  }
  return tools;
}

}  // namespace chasqui
