#include <algorithm>
#include <limits>
#include <set>

#include "api/anthropic/anthropic.h"
#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/generation_fields.h"
#include "api/body/prompt.h"
#include "api/body/tool_call_names.h"
#include "api/body/tool_limits.h"
#include "api/core/answer.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/core/skipped_tools.h"
#include "api/openai/openai_body.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMaxTokensUnsaid = 4096;  // as llama-server

std::string place_in(const std::string& array, std::size_t index) { return array + '[' + std::to_string(index) + ']'; }

// A string, or an array of text blocks, which follow each other without a break, as in llama-server; where pictures are
// among them, they are parts. `media` null: they may not be.
std::optional<Error> read_text(const json::value& value, const std::string& path, MediaIntake* media,
                               ChatMessage& out) {
  if (value.is_string()) {
    out.content += value.get_string();
    return std::nullopt;
  }
  if (!value.is_array()) return invalid_field(path, path + " must be a string or an array of text blocks");
  for (std::size_t i = 0; i < value.get_array().size(); ++i) {
    const std::string block_path = place_in(path, i);
    const json::value& block = value.get_array()[i];
    if (!block.is_object()) return invalid_field(block_path, block_path + " must be an object");
    Fields fields(block.get_object(), block_path);
    const auto type = fields.string("type");
    if (media != nullptr && type == "image") {
      if (auto error = media->take_block(block.get_object(), block_path, out)) return error;
      continue;
    }
    const auto text = fields.string("text");
    if (type != "text") fields.refuse("type", media != nullptr ? "text or image" : "\"text\"");
    if (!text) fields.refuse("text", "a string");
    if (!fields.ok()) return fields.error();
    out.content += *text;
    out.parts.emplace_back(*text);
  }
  if (media != nullptr) media->join_parts(out);
  out.parts.clear();
  return std::nullopt;
}

// One message of a client becomes several of ours: results of tools are messages of their own.
class MessageReader {
 public:
  MessageReader(std::vector<ChatMessage>& out, const MediaReader* media, const std::string& folder)
      : out_(out), media_(media, folder) {}

  std::optional<Error> read(const json::value& value, const std::string& path) {
    if (!value.is_object()) return invalid_field(path, path + " must be an object with role and content");
    Fields fields(value.get_object(), path);
    const auto role = fields.string("role");
    if (role != "user" && role != "assistant" && role != "system") fields.refuse("role", "user, assistant or system");
    const json::value* content = fields.any("content");
    if (content == nullptr) fields.refuse("content", "a string or an array of blocks");
    if (!fields.ok()) return fields.error();
    message_ = {};
    message_.role = *role;
    bool spoken = true;
    if (content->is_array()) {
      spoken = content->get_array().empty();
      for (std::size_t i = 0; i < content->get_array().size(); ++i) {
        bool counts = true;
        if (auto error = read_block(content->get_array()[i], place_in(path + ".content", i), counts)) return error;
        spoken = spoken || counts;
      }
      media_.join_parts(message_);
    } else if (content->is_string()) {
      message_.content = content->get_string();
    } else {
      return invalid_field(path + ".content", path + ".content must be a string or an array of blocks");
    }
    if (spoken) out_.push_back(std::move(message_));
    return std::nullopt;
  }

 private:
  // `counts` becomes false where the block is not part of the message itself.
  std::optional<Error> read_block(const json::value& value, const std::string& path, bool& counts) {
    if (!value.is_object()) return invalid_field(path, path + " must be an object");
    Fields fields(value.get_object(), path);
    const std::string_view type = fields.string("type").value_or("");
    const bool assistant = message_.role == "assistant";
    if (type.starts_with("tool_") && ++calls_ > kSizeLimit<"tool_calls">) {
      return invalid_field("messages", "messages may hold at most " + std::to_string(kSizeLimit<"tool_calls">) +
                                           " calls of tools and their results");
    }
    if (type == "text") {
      const auto text = fields.string("text");
      if (!text) fields.refuse("text", "a string");
      if (text) message_.add_part(*text);
    } else if (type == "image" && !assistant) {
      if (auto error = media_.take_block(value.get_object(), path, message_)) return error;
    } else if (type == "tool_use" && assistant) {
      read_call(fields);
    } else if (type == "tool_result" && !assistant) {
      counts = false;
      if (auto error = read_result(fields, path)) return error;
    } else if (type == "thinking" && assistant) {
      message_.reasoning += fields.string("thinking").value_or("");
    } else if (type != "redacted_thinking") {
      fields.refuse("type", assistant ? "text, thinking, redacted_thinking or tool_use" : "text, image or tool_result");
    }
    if (!fields.ok()) return fields.error();
    return std::nullopt;
  }

  void read_call(Fields& fields) {
    ToolCall& call = message_.tool_calls.emplace_back();
    const auto id = fields.string("id");
    const auto name = fields.string("name");
    const json::object* input = fields.object("input");
    if (!id) fields.refuse("id", "a string");
    if (!name) fields.refuse("name", "a string");
    call.id = id.value_or("");
    call.name = name.value_or("");
    call.arguments = input != nullptr ? json::serialize(*input) : "{}";
    call_names_.add(call.id, call.name);
  }

  std::optional<Error> read_result(Fields& fields, const std::string& path) {
    ChatMessage result;
    result.role = "tool";
    const auto id = fields.string("tool_use_id");
    if (!id) fields.refuse("tool_use_id", "a string");
    if (!fields.ok()) return fields.error();
    result.tool_call_id = *id;
    result.name = call_names_.of(*id);
    if (const json::value* content = fields.any("content")) {
      if (auto error = read_text(*content, path + ".content", &media_, result)) return error;
    }
    if (fields.boolean("is_error").value_or(false)) result.content = "Error: " + result.content;
    out_.push_back(std::move(result));
    return std::nullopt;
  }

  std::vector<ChatMessage>& out_;
  ChatMessage message_;
  MediaIntake media_;
  ToolCallNames call_names_;
  std::size_t calls_ = 0;
};

// `skipped` gets the names of those that are the provider's own.
void read_tools_of(Fields& fields, Chat& chat, std::set<std::string>& skipped) {
  const json::array* tools = tools_within_limits(fields);
  if (tools == nullptr) return;
  for (std::size_t i = 0; i < tools->size() && fields.ok(); ++i) {
    const std::string path = place_in("tools", i);
    if (!(*tools)[i].is_object()) return fields.refuse(path, "an object");
    Fields tool((*tools)[i].get_object(), path);
    if (skip_tool((*tools)[i], "custom", chat.skipped_tools)) {
      skipped.emplace(tool.string("name").value_or(""));
      continue;
    }
    tool.string("type");
    const auto name = tool.string("name");
    const json::object* schema = tool.object("input_schema");
    if (!name || name->empty()) tool.refuse("name", "a string");
    if (schema == nullptr) tool.refuse("input_schema", "a JSON schema");
    if (!tool.ok()) return fields.refuse(tool.error());
    chat.tools.push_back(
        {std::string(*name), std::string(tool.string("description").value_or("")), json::serialize(*schema)});
  }
}

void read_choice(Fields& fields, Chat& chat, const std::set<std::string>& skipped) {
  const json::object* object = fields.object("tool_choice");
  if (object == nullptr) return;
  Fields choice(*object, "tool_choice");
  const std::string_view type = choice.string("type").value_or("");
  const std::string name(type == "tool" ? choice.string("name").value_or("") : "");
  if (type == "none") {
    chat.tool_choice = ToolChoice::none;
  } else if (type == "any" || type == "tool") {
    chat.tool_choice = ToolChoice::required;
    chat.only_tool = name;
    if (chat.tools.empty() && type == "any") chat.tool_choice = ToolChoice::automatic;  // as in llama-server
  } else if (type != "auto") {
    choice.refuse("type", "auto, any, tool or none");
  }
  const bool left_out = type == "tool" && skipped.contains(name);
  if (left_out) {
    chat.tool_choice = ToolChoice::automatic;
    chat.only_tool.clear();
  }
  const bool known = left_out || std::ranges::any_of(chat.tools, [&](const Tool& t) { return t.name == name; });
  if (type == "tool" && !known) choice.refuse("name", "the name of one of the tools");
  chat.parallel_tool_calls = !choice.boolean("disable_parallel_tool_use").value_or(false);
  if (!choice.ok()) fields.refuse(choice.error());
}

ReasoningWish read_thinking(Fields& fields, Chat& chat) {
  const json::object* object = fields.object("thinking");
  if (object == nullptr) return {};
  Fields thinking(*object, "thinking");
  const auto type = thinking.string("type");
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    thinking.refuse("type", "enabled, disabled or adaptive");
  }
  chat.enable_thinking = type != "disabled";
  ReasoningWish wish;
  if (const auto budget = thinking.integer("budget_tokens")) {
    if (*budget < 1 || *budget > std::numeric_limits<TokenCount>::max()) {
      thinking.refuse("budget_tokens", "a whole number of tokens, at least 1");
    } else if (type == "enabled") {
      wish.budget = static_cast<TokenCount>(*budget);
    }
  }
  if (!thinking.ok()) fields.refuse(thinking.error());
  return wish;
}

void read_stops(Fields& fields, RequestDraft& draft) {
  const json::array* stops = fields.array("stop_sequences");
  if (stops == nullptr) return;
  for (const json::value& stop : *stops) {
    if (!stop.is_string()) return fields.refuse("stop_sequences", "an array of strings");
    if (!stop.get_string().empty()) draft.stop.emplace_back(stop.get_string());
  }
}

// {"format":{"type":"json_schema","schema":…},"effort":"low"}; `output_format` is what `format` was before.
void read_output_config(Fields& fields, RequestDraft& draft) {
  const json::object* object = fields.object("output_config");
  const json::value* format = object != nullptr ? object->if_contains("format") : nullptr;
  const json::value* const older = fields.any("output_format");
  std::string name = "output_config.format";
  if (older != nullptr) {
    if (format != nullptr && !format->is_null()) {
      return fields.refuse("output_format", "left out beside output_config.format");
    }
    format = older;
    name = "output_format";
  }
  if (format == nullptr || format->is_null()) return;
  if (!format->is_object()) return fields.refuse(name, "an object");
  Fields inner(format->get_object(), name);
  if (inner.string("type") != "json_schema") inner.refuse("type", "json_schema");
  const json::object* schema = inner.object("schema");
  if (schema == nullptr) inner.refuse("schema", "a JSON schema");
  if (!inner.ok()) return fields.refuse(inner.error());
  if (draft.grammar) return fields.refuse(name, "left out beside grammar or json_schema");
  if (auto taken = take_schema(*schema, name + ".schema", false, draft); !taken) fields.refuse(taken.error());
}

// How much the model thinks; what `thinking` says goes before it.
void read_output_effort(Fields& fields, Chat& chat) {
  const json::object* object = fields.object("output_config");
  if (object == nullptr) return;
  Fields config(*object, "output_config");
  const auto effort = config.string("effort");
  if (effort && chat.enable_thinking != false) set_reasoning_effort(chat, *effort, config, "effort");
  if (!config.ok()) fields.refuse(config.error());
}

// Claude Code begins its system prompt with a billing header whose stamp, "cch=a5145;", differs in each request. It
// says nothing to the model, and nothing after it would be found in the prefix cache.
void blank_billing_stamp(std::string& system) {
  constexpr std::string_view kHeader = "x-anthropic-billing-header:";
  constexpr std::string_view kStamp = "cch=";
  constexpr std::size_t kStampMax = 16;
  if (!system.starts_with(kHeader)) return;
  const std::size_t found = system.find(kStamp, kHeader.size());
  if (found == std::string::npos || found > system.find('\n')) return;
  const std::size_t begin = found + kStamp.size();
  const std::size_t end = system.find(';', begin);
  if (end == std::string::npos || end - begin > kStampMax) return;
  std::fill(system.begin() + static_cast<std::ptrdiff_t>(begin), system.begin() + static_cast<std::ptrdiff_t>(end),
            '0');
}

// A client marks what it will send again, with more: blocks of text, messages' or the system's, and tools.
bool has_cache_mark(const json::value& value) {
  if (const json::array* all = value.if_array()) return std::ranges::any_of(*all, has_cache_mark);
  const json::object* object = value.if_object();
  if (object == nullptr) return false;
  if (const json::value* mark = object->if_contains("cache_control"); mark != nullptr && mark->is_object()) return true;
  const json::value* content = object->if_contains("content");
  return content != nullptr && has_cache_mark(*content);
}

bool marks_for_cache(const Fields& fields) {
  if (fields.any("cache_control") != nullptr) return true;
  constexpr const char* kMarked[] = {"system", "tools", "messages"};
  return std::ranges::any_of(kMarked, [&fields](const char* name) {
    const json::value* value = fields.any(name);
    return value != nullptr && has_cache_mark(*value);
  });
}

}  // namespace

Chat read_anthropic_chat(Fields& fields, const RequestDefaults& defaults, const MediaReader* media) {
  Chat chat = new_chat(defaults);
  chat.split_reasoning = true;
  if (const json::value* system = fields.any("system")) {
    ChatMessage& message = chat.messages.emplace_back();
    message.role = "system";
    if (auto error = read_text(*system, "system", nullptr, message)) fields.refuse(std::move(*error));
    blank_billing_stamp(message.content);
  }
  const json::array* messages = fields.array("messages");
  if (messages == nullptr || messages->empty() || messages->size() > kSizeLimit<"messages">) {
    fields.refuse("messages", "an array of 1 to " + std::to_string(kSizeLimit<"messages">) + " messages");
    return chat;
  }
  MessageReader reader(chat.messages, media, defaults.media_folder);
  for (std::size_t i = 0; i < messages->size() && fields.ok(); ++i) {
    if (auto error = reader.read((*messages)[i], place_in("messages", i))) fields.refuse(std::move(*error));
  }
  collect_media(chat);
  std::set<std::string> skipped;
  read_tools_of(fields, chat, skipped);
  read_choice(fields, chat, skipped);
  read_thinking(fields, chat);
  read_output_effort(fields, chat);
  if (!fields.ok()) return chat;
  chat.continue_final_message = goes_on_with_last(defaults, chat);
  chat.add_generation_prompt = !chat.continue_final_message;
  return chat;
}

Result<Answer> prepare_messages(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  // Theirs has other values than OpenAI's, and none that changes what is done here.
  object->erase("service_tier");
  Fields fields(*object);
  RequestDraft draft = new_draft(served, caller);
  draft.max_tokens = kMaxTokensUnsaid;
  draft.returns = draft.returns || marks_for_cache(fields);
  read_common_fields(caller, fields, draft);
  read_adapters(served, fields, draft);
  read_stops(fields, draft);
  read_constraint(fields, draft);
  read_output_config(fields, draft);
  refuse_unsupported(fields, {"n_probs", "post_sampling_probs"});
  const bool stream = fields.boolean("stream").value_or(false);
  const Chat chat = read_anthropic_chat(fields, served.config.defaults, served.model.media.get());
  if (!fields.ok()) return fields.error();
  Chat read_before;  // its switches are in `chat` already
  const ReasoningWish reasoning = read_thinking(fields, read_before);
  auto made = requests_from_chat(served, chat, std::move(draft), 1, reasoning);
  if (!made) return made.error();
  const auto prompt = static_cast<TokenCount>(made->requests.front()->prompt.size());
  auto writer = make_message_writer(random_id("msg_"), served.config.name, prompt, std::move(made->format));
  Answer answer = answer_of(std::move(made->requests), stream, std::move(writer));
  answer.skipped_tools = chat.skipped_tools;
  return answer;
}

Result<std::string> count_message_tokens(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const Chat chat = read_anthropic_chat(fields, served.config.defaults, served.model.media.get());
  if (!fields.ok()) return fields.error();
  auto prompt = prompt_of_chat(served, chat);
  if (!prompt) return prompt.error();
  return "{\"input_tokens\":" + std::to_string(prompt->tokens.size()) + "}";
}

}  // namespace chasqui
