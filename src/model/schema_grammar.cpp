#include "model/schema_grammar.h"

#include <exception>

#include <json-schema-to-grammar.h>

#include "base/limits.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

Result<std::string> grammar_of_schema(const std::string& schema) {
  const WorkBudget budget(kTimeLimit<"schema_seconds">);
  try {
    const common_chat_schema_document document = common_chat_schema_from_json(common_json::parse(schema));
    // Not with json_schema_to_grammar(): its rules for the members of the whole are named by them alone, so that a
    // member without a name would take the place of the root.
    std::string grammar = build_grammar([&document](const common_grammar_builder& builder) {
      builder.add_rule("root", builder.add_schema("answer", *document.root));
    });
    replace_all(grammar, "([eE] [-+]? integral-part)?", "([eE] [-+]? [0-9]{1,2})?");
    replace_all(grammar, "\"u\" [0-9a-fA-F]{4}",
                "\"u\" ([0-9a-ce-fA-CE-F] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})");
    return grammar;
  } catch (const std::exception& failed) {
    if (budget.is_too_deep()) {
      return invalid_field("json_schema", "json_schema is nested too deeply, or leads back to itself within allOf");
    }
    if (budget.is_used_up()) return invalid_field("json_schema", "json_schema is too complex to make a grammar of");
    return invalid_field("json_schema", std::string("json_schema cannot be used: ") + failed.what());
  }
}

Result<void> check_tool_schema(const std::string& schema) {
  try {
    const common_chat_schema_document document = common_chat_schema_from_json(common_json::parse(schema));
    build_grammar([&document](const common_grammar_builder& builder) { builder.add_schema("tool", *document.root); });
    return {};
  } catch (const std::exception& failed) {
    return invalid_field("tools", failed.what());
  }
}

}  // namespace chasqui
