#include <algorithm>
#include <functional>
#include <map>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/generation_fields.h"
#include "api/body/media_intake.h"
#include "api/body/prompt.h"
#include "api/body/tool_call_names.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/core/skipped_tools.h"
#include "api/openai/openai_body.h"
#include "api/openai/response_echo.h"
#include "api/openai/responses.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

namespace json = boost::json;

std::string input_path(const std::string& array, std::size_t index) {
  return array + '[' + std::to_string(index) + ']';
}

// An array of parts that have text, and of those that `media` takes; null: it takes none.
std::optional<Error> read_parts(const json::value& value, const std::string& path, MediaIntake* media,
                                ChatMessage& out) {
  if (!value.is_array()) return invalid_field(path, path + " must be a string or an array of parts");
  for (std::size_t i = 0; i < value.get_array().size(); ++i) {
    const std::string part_path = input_path(path, i);
    const json::value& part = value.get_array()[i];
    if (!part.is_object()) return invalid_field(part_path, part_path + " must be an object");
    Fields fields(part.get_object(), part_path);
    const std::string_view type = fields.string("type").value_or("");
    if (media != nullptr && MediaIntake::is_part(type)) {
      if (auto error = media->take_part(type, part.get_object(), part_path, out)) return error;
      continue;
    }
    const bool refusal = type == "refusal";
    const auto text = fields.string(refusal ? "refusal" : "text");
    if (!refusal && type != "input_text" && type != "output_text" && type != "text" && type != "reasoning_text" &&
        type != "summary_text") {
      fields.refuse("type", "input_text, output_text, input_image or input_audio");
    }
    if (!text) fields.refuse(refusal ? "refusal" : "text", "a string");
    if (!fields.ok()) return fields.error();
    out.add_part(*text);
  }
  if (media != nullptr) media->join_parts(out);
  return std::nullopt;
}

std::optional<Error> take_content(const json::value& value, const std::string& path, MediaIntake& media,
                                  ChatMessage& message) {
  if (!value.is_string()) return read_parts(value, path, &media, message);
  message.content = value.get_string();
  return std::nullopt;
}

// Items to messages: reasoning and calls of one answer, which are items of their own, become one message again.
class InputReader {
 public:
  InputReader(std::vector<ChatMessage>& out, const MediaReader* media, const std::string& folder)
      : out_(out), media_(media, folder) {}

  std::optional<Error> read(const json::value& value, const std::string& path) {
    if (!value.is_object()) return invalid_field(path, path + " must be an object");
    Fields fields(value.get_object(), path);
    const std::string_view type = fields.string("type").value_or("message");
    std::optional<Error> error;
    if (type == "message") {
      error = read_message_item(fields, path);
    } else if (type == "function_call") {
      read_call(fields);
    } else if (type == "function_call_output") {
      error = read_output(fields, path);
    } else if (type == "reasoning") {
      error = read_reasoning_item(fields, path);
    } else if (type == "item_reference") {
      fields.refuse("id", "a string: the id of an item of an earlier answer");
    } else {
      fields.refuse("type", "message, function_call, function_call_output, reasoning or item_reference");
    }
    if (error) return error;
    if (!fields.ok()) return fields.error();
    return std::nullopt;
  }

 private:
  ChatMessage& assistant() {
    if (out_.empty() || out_.back().role != "assistant") out_.emplace_back().role = "assistant";
    return out_.back();
  }

  std::optional<Error> read_message_item(Fields& fields, const std::string& path) {
    const auto role = fields.string("role");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
      fields.refuse("role", "user, assistant, system or developer");
    }
    const json::value* content = fields.any("content");
    if (content == nullptr) fields.refuse("content", "a string or an array of parts");
    if (!fields.ok()) return fields.error();
    if (role == "assistant" && !out_.empty() && out_.back().role == "assistant" && out_.back().content.empty() &&
        out_.back().tool_calls.empty()) {
      return take_content(*content, path + ".content", media_, out_.back());  // behind its reasoning
    }
    ChatMessage& message = out_.emplace_back();
    message.role = *role;
    return take_content(*content, path + ".content", media_, message);
  }

  void read_call(Fields& fields) {
    const auto id = fields.string("call_id");
    const auto name = fields.string("name");
    const auto arguments = fields.string("arguments");
    if (!id) fields.refuse("call_id", "a string");
    if (!name) fields.refuse("name", "a string");
    if (!arguments) fields.refuse("arguments", "a string");
    if (!fields.ok()) return;
    assistant().tool_calls.push_back({std::string(*id), std::string(*name), arguments_as_json(*arguments)});
    call_names_.add(*id, *name);
  }

  std::optional<Error> read_output(Fields& fields, const std::string& path) {
    const auto id = fields.string("call_id");
    const json::value* output = fields.any("output");
    if (!id) fields.refuse("call_id", "a string");
    if (output == nullptr) fields.refuse("output", "a string or an array of parts");
    if (!fields.ok()) return fields.error();
    ChatMessage message;
    message.role = "tool";
    message.tool_call_id = *id;
    message.name = call_names_.of(*id);
    if (auto error = take_content(*output, path + ".output", media_, message)) return error;
    out_.push_back(std::move(message));
    return std::nullopt;
  }

  std::optional<Error> read_reasoning_item(Fields& fields, const std::string& path) {
    ChatMessage& message = out_.emplace_back();
    message.role = "assistant";
    for (const char* name : {"content", "summary"}) {
      const json::value* parts = fields.any(name);
      if (parts == nullptr || !message.reasoning.empty()) continue;
      if (parts->is_string()) {
        message.reasoning = parts->get_string();
        continue;
      }
      ChatMessage texts;
      if (auto error = read_parts(*parts, path + "." + name, nullptr, texts)) return error;
      for (const std::string& text : texts.parts) message.reasoning += text;
    }
    return std::nullopt;
  }

  std::vector<ChatMessage>& out_;
  MediaIntake media_;
  ToolCallNames call_names_;
};

void keep_item(json::object object, ResponseAsk& ask) {
  if (!ask.store) return;
  const json::value* id = object.if_contains("id");
  if (id == nullptr || !id->is_string()) object["id"] = random_id("item_");
  if (!object.contains("type")) object["type"] = "message";
  ask.input.ids.emplace_back(object["id"].get_string());
  ask.input.items.push_back(json::serialize(object));
}

// Takes it out of the body, item by item, so that a large one is not in memory once more than it has to be.
void read_input(json::object& body, Fields& fields, const ServedModel& served, ResponseAsk& ask) {
  json::value* const input = body.if_contains("input");
  if (input != nullptr && input->is_string()) {
    ChatMessage& message = ask.chat.messages.emplace_back();
    message.role = "user";
    message.content = input->get_string();
    keep_item({{"type", "message"},
               {"role", "user"},
               {"content", json::array{json::object{{"type", "input_text"}, {"text", input->get_string()}}}}},
              ask);
    return;
  }
  if (input == nullptr || !input->is_array() || input->get_array().empty() ||
      input->get_array().size() > kSizeLimit<"messages">) {
    return fields.refuse("input", "a string or an array of 1 to " + std::to_string(kSizeLimit<"messages">) + " items");
  }
  InputReader reader(ask.chat.messages, served.model.media.get(), served.config.defaults.media_folder);
  for (std::size_t i = 0; i < input->get_array().size() && fields.ok(); ++i) {
    json::value& value = input->get_array()[i];
    if (auto error = reader.read(value, input_path("input", i))) return fields.refuse(std::move(*error));
    keep_item(std::move(value.get_object()), ask);
    value = nullptr;
  }
}

// The tools of this dialect have no `function` around them.
json::array with_functions(Fields& fields, std::vector<std::string>& skipped) {
  json::array out;
  const json::array* tools = fields.array("tools");
  if (tools == nullptr) return out;
  for (std::size_t i = 0; i < tools->size() && fields.ok(); ++i) {
    const std::string path = input_path("tools", i);
    const json::object* object = (*tools)[i].if_object();
    const json::value* type = object != nullptr ? object->if_contains("type") : nullptr;
    if (type == nullptr || !type->is_string()) {
      fields.refuse(path + ".type", "a string, such as \"function\"");
      break;
    }
    if (skip_tool((*tools)[i], "function", skipped)) continue;
    Fields told(*object, path);
    told.boolean("strict");
    if (!told.ok()) fields.refuse(told.error());
    json::object function = *object;
    function.erase("type");
    function.erase("strict");
    out.push_back(json::object{{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

void read_reasoning_wish(Fields& fields, Chat& chat) {
  const json::object* object = fields.object("reasoning");
  if (object == nullptr) return;
  Fields reasoning(*object, "reasoning");
  const auto effort = reasoning.string("effort");
  if (effort && *effort != "default") set_reasoning_effort(chat, *effort, reasoning, "effort");
  if (!reasoning.ok()) fields.refuse(reasoning.error());
}

void read_text_format(Fields& fields, RequestDraft& draft) {
  const json::object* text = fields.object("text");
  const json::value* format = text != nullptr ? text->if_contains("format") : nullptr;
  if (format == nullptr || format->is_null()) return;
  if (!format->is_object()) return fields.refuse("text.format", "an object");
  Fields inner(format->get_object(), "text.format");
  const std::string_view type = inner.string("type").value_or("text");
  json::value schema;
  if (type == "json_object") {
    schema = json::object{{"type", "object"}};
  } else if (type == "json_schema") {
    const json::object* object = inner.object("schema");
    if (object == nullptr) inner.refuse("schema", "a JSON schema");
    if (object != nullptr) schema = *object;
  } else if (type != "text") {
    inner.refuse("type", "text, json_object or json_schema");
  }
  if (!schema.is_null() && draft.grammar) {
    return fields.refuse("text.format", "left out beside grammar, json_schema or response_format");
  }
  if (inner.ok() && !schema.is_null()) {
    const bool strict = inner.boolean("strict").value_or(false);
    auto taken = take_schema(schema, "text.format.schema", strict, draft);
    if (!taken) return fields.refuse(taken.error());
  }
  if (!inner.ok()) fields.refuse(inner.error());
}

// The id of {"type":"item_reference","id":…}, whose type may be left out; null: it is no such item.
const json::string* reference_of(const json::value& item) {
  const json::object* const object = item.if_object();
  const json::value* const id = object != nullptr ? object->if_contains("id") : nullptr;
  if (id == nullptr || !id->is_string()) return nullptr;
  const json::value* const type = object->if_contains("type");
  const bool untyped = type == nullptr || type->is_null();
  const bool refers = untyped ? !object->contains("role") : type->is_string() && type->get_string() == "item_reference";
  return refers ? &id->get_string() : nullptr;
}

// In their order, each once: the loop looks for them.
Result<std::vector<std::string>> references_in(const json::object& body) {
  std::vector<std::string> out;
  const json::value* const input = body.if_contains("input");
  if (input == nullptr || !input->is_array() || input->get_array().size() > kSizeLimit<"messages">) return out;
  for (const json::value& item : input->get_array()) {
    const json::string* const id = reference_of(item);
    if (id == nullptr) continue;
    if (!is_short_id(*id)) {
      return Error{ErrorCode::not_found,
                   "input: there is no item with an id of more than " + std::to_string(kSizeLimit<"named_id_bytes">) +
                       " bytes in a response that was stored",
                   "input"};
    }
    out.emplace_back(*id);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<ResponseAsk> read_whole(const ServedModel& served, const Caller& caller, json::object object) {
  Fields fields(object);
  ResponseAsk ask;
  ask.draft = new_draft(served, caller);
  ask.chat = new_chat(served.config.defaults);
  read_common_fields(caller, fields, ask.draft);
  read_adapters(served, fields, ask.draft);
  read_constraint(fields, ask.draft);
  refuse_unsupported(fields, {"conversation", "prompt", "top_logprobs", "n_probs", "post_sampling_probs"});
  if (const auto tokens = fields.integer("max_output_tokens")) ask.draft.max_tokens = *tokens;
  // As in llama-server nothing is ever left out of a conversation, and every response is made at once.
  const std::string_view truncation = fields.string("truncation").value_or("disabled");
  if (truncation != "disabled" && truncation != "auto") fields.refuse("truncation", "disabled or auto");
  fields.boolean("background");
  ask.stream = fields.boolean("stream").value_or(false);
  ask.store = fields.boolean("store").value_or(true);
  ask.instructions = fields.string("instructions").value_or("");
  if (const auto previous = fields.string("previous_response_id")) ask.previous = std::string(*previous);
  read_input(object, fields, served, ask);
  const json::array functions = with_functions(fields, ask.chat.skipped_tools);
  if (!fields.ok()) return fields.error();

  // What is left is said in the words of chat completions.
  object.erase("input");
  json::object switches = object;
  switches["tools"] = functions;
  switches.erase("reasoning_effort");
  Fields rest(switches);
  read_chat_switches(rest, ask.chat);
  read_reasoning_wish(rest, ask.chat);
  ask.reasoning = read_reasoning_budget(rest);
  read_text_format(rest, ask.draft);
  if (!rest.ok()) return rest.error();
  auto echo = echo_of(object, ask.draft.sampling, ask.store);
  if (!echo) return echo.error();
  ask.echo = std::move(*echo);
  return ask;
}

}  // namespace

Result<ResponseAsk> read_response_ask(const ServedModel& served, const Caller& caller, std::string body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  body = std::string();
  auto references = references_in(*object);
  if (!references) return references.error();
  if (references->empty()) return read_whole(served, caller, std::move(*object));
  ResponseAsk ask;
  ask.references = std::move(*references);
  ask.unread = std::move(*object);
  return ask;
}

Result<ResponseAsk> read_response_again(const ServedModel& served, const Caller& caller, json::object unread,
                                        const ResponseBodies& bodies) {
  struct Referred {
    json::value item;
    std::size_t bytes = 0;
  };
  std::map<std::string, Referred, std::less<>> items;
  auto references = references_in(unread);
  if (!references) return references.error();
  for (std::string& id : *references) items.try_emplace(std::move(id));
  for (const auto& body : bodies) {
    const auto response = parse_json_object(*body);
    if (!response) return response.error();
    for (const json::value& item : response->at("output").as_array()) {
      const auto found = items.find(std::string_view(item.at("id").as_string()));
      if (found != items.end()) found->second = {item, json::serialize(item).size()};
    }
  }
  // A reference of some bytes stands for an item of any length, and may be repeated: all of them together are no longer
  // than a body that has the items themselves.
  std::size_t bytes = 0;
  for (json::value& item : unread.at("input").as_array()) {
    const json::string* const id = reference_of(item);
    const auto found = id != nullptr ? items.find(std::string_view(*id)) : items.end();
    if (found == items.end() || found->second.bytes == 0) continue;
    bytes += found->second.bytes;
    if (bytes > kSizeLimit<"body_bytes">) {
      return invalid_field("input", "input may refer to items of at most " + std::to_string(kSizeLimit<"body_bytes">) +
                                        " bytes, all references together");
    }
    item = found->second.item;
  }
  return read_whole(served, caller, std::move(unread));
}

}  // namespace chasqui
