#include "api/body/constraint.h"

#include "api/schema/recent_schemas.h"
#include "api/schema/schema_check.h"
#include "base/limits.h"
#include "model/grammar_shape.h"
#include "model/schema_grammar.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kConstraintBytes = kSizeLimit<"grammar_bytes">;

void take(Fields& fields, const json::value& schema, const std::string& path, bool strict, RequestDraft& draft) {
  if (auto taken = take_schema(schema, path, strict, draft); !taken) fields.refuse(taken.error());
}

// {"type":"json_object"} with llama-server's optional `schema`, {"type":"json_schema","json_schema":{"schema":…}}, and
// what llama-server's README writes for that: {"type":"json_schema","schema":…}.
void read_response_format(Fields& fields, const json::object& format, RequestDraft& draft) {
  Fields inner(format, "response_format");
  const auto type = inner.string("type");
  if (!type || *type == "text") {
    if (!inner.ok()) fields.refuse(inner.error());
    return;
  }
  if (*type == "json_object") {
    const json::value* schema = inner.any("schema");
    const json::value any = json::object{{"type", "object"}};
    return take(fields, schema != nullptr ? *schema : any, "response_format.schema", false, draft);
  }
  if (*type != "json_schema") {
    inner.refuse("type", "text, json_object or json_schema");
    return fields.refuse(inner.error());
  }
  const json::object* named = inner.object("json_schema");
  if (const json::value* schema = inner.any("schema"); schema != nullptr && inner.any("json_schema") == nullptr) {
    return take(fields, *schema, "response_format.schema", inner.boolean("strict").value_or(false), draft);
  }
  if (named == nullptr) {
    inner.refuse("json_schema", "an object with name and schema");
    return fields.refuse(inner.error());
  }
  Fields body(*named, "response_format.json_schema");
  body.string("name");
  const bool strict = body.boolean("strict").value_or(false);
  const json::value* schema = body.any("schema");
  if (schema == nullptr) body.refuse("schema", "a JSON Schema");
  if (!body.ok()) return fields.refuse(body.error());
  take(fields, *schema, "response_format.json_schema.schema", strict, draft);
}

// What its grammar is refused for is the schema's fault.
Error under(const std::string& path, const Error& error) {
  return invalid_field(path, path + " cannot be kept: " + error.message);
}

Error too_large(const std::string& path) {
  return invalid_field(path, path + " may have at most " + std::to_string(kConstraintBytes) + " bytes");
}

void read_one(Fields& fields, bool formatted, RequestDraft& draft) {
  const auto grammar = fields.string("grammar");
  const json::value* schema = fields.any("json_schema");
  if (!fields.ok()) return;
  const bool has_grammar = grammar && !grammar->empty();
  if ((has_grammar ? 1 : 0) + (schema != nullptr ? 1 : 0) + (formatted ? 1 : 0) > 1) {
    return fields.refuse(has_grammar ? "grammar" : "json_schema",
                         "left out: only one of grammar, json_schema and response_format can be kept");
  }
  if (has_grammar) {
    if (grammar->size() > kConstraintBytes) {
      return fields.refuse("grammar", "text of at most " + std::to_string(kConstraintBytes) + " bytes");
    }
    draft.grammar.emplace().text = *grammar;
  } else if (schema != nullptr) {
    take(fields, *schema, "json_schema", false, draft);
  }
}

}  // namespace

Result<void> take_schema(const json::value& given, const std::string& path, bool strict, RequestDraft& draft) {
  draft.grammar_field = path;
  const bool says_nothing = given.is_object() && given.get_object().empty();
  const json::value schema = says_nothing ? json::object{{"type", "object"}} : given;
  if (draft.schemas_converted) {
    auto converted = schema_constraint(schema, path);
    if (!converted) return converted.error();
    draft.grammar = std::move(*converted);
    return {};
  }
  const std::string text = json::serialize(schema);
  if (text.size() > kConstraintBytes) return too_large(path);
  thread_local RecentSchemas recent(schema_metrics());
  auto written = recent.write(schema, text, path, strict, draft.schema_order);
  if (!written) return written.error();
  draft.grammar.emplace().text = std::move(written->text);
  draft.dropped_keywords = std::move(written->dropped);
  return {};
}

Result<Grammar> schema_constraint(const json::value& schema, const std::string& path) {
  if (json::serialize(schema).size() > kConstraintBytes) return too_large(path);
  auto checked = check_schema(schema, path);
  if (!checked) return checked.error();
  auto text = grammar_of_schema(json::serialize(*checked));
  if (!text) return under(path, text.error());
  if (auto ok = check_grammar_shape(*text); !ok) return under(path, ok.error());
  Grammar grammar;
  grammar.text = std::move(*text);
  return grammar;
}

void read_constraint(Fields& fields, RequestDraft& draft) {
  const json::object* format = fields.object("response_format");
  if (!fields.ok()) return;
  const bool formatted = format != nullptr && format->if_contains("type") != nullptr && format->at("type") != "text";
  read_one(fields, formatted, draft);
  if (format != nullptr && fields.ok()) read_response_format(fields, *format, draft);
}

void read_grammar(Fields& fields, RequestDraft& draft) { read_one(fields, false, draft); }

}  // namespace chasqui
