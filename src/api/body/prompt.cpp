#include "api/body/prompt.h"

#include <algorithm>

#include "api/body/generation_fields.h"
#include "api/body/tool_limits.h"
#include "api/core/key_ring.h"
#include "api/core/skipped_tools.h"
#include "base/ascii.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "model/grammar_shape.h"
#include "model/reasoning_gate.h"

namespace chasqui {
namespace {

namespace json = boost::json;

std::string item(std::string_view array, std::size_t index) {
  return std::string(array) + '[' + std::to_string(index) + ']';
}

// Which roles there are is the template's to say.
bool possible_role(std::string_view role) {
  const auto fits = [](char c) { return is_ascii_word_or("_-", c); };
  return !role.empty() && role.size() <= 64 && std::ranges::all_of(role, fits);
}

// A string, or an array of {"type":"text","text":…} parts and those that MediaIntake takes.
std::optional<Error> read_content(const json::value& value, const std::string& path, MediaIntake& media,
                                  ChatMessage& message) {
  if (value.is_string()) {
    message.content = value.get_string();
    return std::nullopt;
  }
  if (!value.is_array()) {
    return invalid_field(path + ".content", path + ".content must be a string or an array of parts");
  }
  std::size_t index = 0;
  for (const json::value& part : value.get_array()) {
    const std::string part_path = item(path + ".content", index++);
    if (!part.is_object()) return invalid_field(part_path, part_path + " must be an object");
    Fields fields(part.get_object(), part_path);
    const auto type = fields.string("type");
    if (type && MediaIntake::is_part(*type)) {
      if (auto error = media.take_part(*type, part.get_object(), part_path, message)) return error;
      continue;
    }
    const bool refusal = type == "refusal" && message.role == "assistant";
    const std::string_view name = refusal ? "refusal" : "text";
    const auto text = fields.string(name);
    if (type != "text" && !refusal) fields.refuse("type", "text, image_url or input_audio");
    if (!text) fields.refuse(name, "a string");
    if (!fields.ok()) return fields.error();
    message.add_part(*text);
  }
  media.join_parts(message);
  return std::nullopt;
}

}  // namespace

std::string arguments_as_json(std::string_view text) {
  if (text.empty()) return "{}";  // as some clients write a call without arguments
  if (is_json(text)) return std::string(text);
  return json::serialize(json::object{{"arguments", text}});
}

namespace {

// Tool arguments come as JSON text from OpenAI's clients, and as an object from some others.
std::string arguments_text(const Fields& function) {
  const json::value* value = function.any("arguments");
  if (value == nullptr) return "{}";
  return value->is_string() ? arguments_as_json(value->get_string()) : json::serialize(*value);
}

// A function's name and arguments; they are the whole call in the older `function_call`.
std::optional<Error> read_function(const json::object& object, const std::string& path, ToolCall& out) {
  Fields function(object, path);
  const auto name = function.string("name");
  if (!name) function.refuse("name", "a string");
  out.arguments = arguments_text(function);
  if (!function.ok()) return function.error();
  out.name = *name;
  return std::nullopt;
}

std::optional<Error> read_tool_calls(const json::array& calls, const std::string& path, ChatMessage& message) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string call_path = item(path + ".tool_calls", i);
    if (!calls[i].is_object()) return invalid_field(call_path, call_path + " must be an object");
    Fields call(calls[i].get_object(), call_path);
    ToolCall& out = message.tool_calls.emplace_back();
    out.id = call.string("id").value_or("");
    const json::object* function = call.object("function");
    if (function == nullptr) call.refuse("function", "an object with name and arguments");
    if (!call.ok()) return call.error();
    if (auto error = read_function(*function, call_path + ".function", out)) return error;
  }
  return std::nullopt;
}

// `bare`: an item of the older `functions`, which has nothing around the function.
std::optional<Error> read_tool(const json::value& value, const std::string& path, bool bare, Tool& tool) {
  if (!value.is_object()) return invalid_field(path, path + " must be an object");
  Fields fields(value.get_object(), path);
  const auto type = fields.string("type");
  if (type && !bare && *type != "function") fields.refuse("type", "\"function\"");
  const json::object* function = bare ? &value.get_object() : fields.object("function");
  if (function == nullptr) fields.refuse("function", "an object with name, description and parameters");
  if (!fields.ok()) return fields.error();
  Fields inner(*function, bare ? path : path + ".function");
  const auto name = inner.string("name");
  if (!name || name->empty()) inner.refuse("name", "a string");
  tool.description = inner.string("description").value_or("");
  const json::object* parameters = inner.object("parameters");
  if (!inner.ok()) return inner.error();
  tool.name = *name;
  tool.parameters = parameters != nullptr ? json::serialize(*parameters) : R"({"type":"object","properties":{}})";
  return std::nullopt;
}

// What a grammar is refused for is the fault of what it was made of.
Error in_words_of(const RequestDraft& draft, const Error& error) {
  if (error.field != "grammar" || draft.grammar_field.empty()) return error;
  return invalid_field(draft.grammar_field, draft.grammar_field + " cannot be kept to: its " + error.message);
}

}  // namespace

Result<void> check_texts_fit(const ServedModel& served, const Chat& chat) {
  std::size_t bytes = 0;
  for (const ChatMessage& message : chat.messages) bytes += message.role != "assistant" ? message.content.size() : 0;
  return check_prompt_bytes(served, bytes);
}

RequestDraft new_draft(const ServedModel& served, const Caller& caller) {
  RequestDraft draft;
  draft.sampling = served.config.defaults.sampling;
  draft.stop = served.config.defaults.stop;
  draft.special_pieces = served.config.defaults.special_pieces;
  draft.schema_order = served.config.defaults.schema_order;
  draft.use_cache = served.config.cache_prompt;
  draft.adapters = served.adapters.list()->standing();
  draft.tenant = caller.tenant;
  draft.service_class = caller.service_class;
  draft.traced = served.config.traces;
  draft.ttft_ms = caller.ttft_ms;
  draft.returns = caller.in_session;
  draft.group = caller.gateway.group;
  // No sooner than the most urgent class that the key may ask for, or its prompts' neighbours would wait for it; and a
  // token no later than the least urgent class, or prompts beside it would be prefilled in steps without an end.
  const auto& targets = served.engine.targets().of;
  const ClassTarget& rights = targets[static_cast<std::size_t>(caller.most_urgent)];
  if (caller.gateway.ttft > Duration::zero()) draft.ttft_target = std::max(caller.gateway.ttft, rights.first_token);
  if (caller.gateway.tpot > Duration::zero()) {
    const Duration latest = std::ranges::max(targets, {}, &ClassTarget::next_token).next_token;
    draft.tpot_target = std::clamp(caller.gateway.tpot, rights.next_token, std::max(rights.next_token, latest));
  }
  const auto& sampling = served.model.sampling;
  draft.schemas_converted = sampling != nullptr && sampling->engine() == GrammarEngine::llama;
  return draft;
}

std::optional<Error> read_message(const json::value& value, const std::string& path, MediaIntake& media,
                                  ChatMessage& message) {
  if (!value.is_object()) return invalid_field(path, path + " must be an object with role and content");
  Fields fields(value.get_object(), path);
  const auto role = fields.string("role");
  if (!role || !possible_role(*role)) {
    fields.refuse("role",
                  "one of system, developer, user, assistant, tool, or a name that the model's template knows: at most "
                  "64 letters, digits, _ and -");
  }
  message.name = fields.string("name").value_or("");
  message.tool_call_id = fields.string("tool_call_id").value_or("");
  message.reasoning = fields.string("reasoning_content").value_or("");
  const json::array* calls = fields.array("tool_calls");
  if (calls != nullptr && !calls->empty() && role && *role != "assistant") {
    fields.refuse("tool_calls", "left out unless the role is assistant");
  }
  const json::object* old_call = fields.object("function_call");
  const json::value* content = fields.any("content");
  const bool called = role == "assistant" && (calls != nullptr || old_call != nullptr);
  // null stands for an empty text, as in llama-server.
  if (content == nullptr && !called && !value.get_object().contains("content")) {
    fields.refuse("content", "a string or an array of parts");
  }
  if (!fields.ok()) return fields.error();
  message.role = *role == "function" ? "tool" : std::string(*role);  // OpenAI's older name
  if (old_call != nullptr && role == "assistant") {
    if (auto error = read_function(*old_call, path + ".function_call", message.tool_calls.emplace_back())) return error;
  }
  if (content != nullptr) {
    if (auto error = read_content(*content, path, media, message)) return error;
  }
  return calls != nullptr ? read_tool_calls(*calls, path, message) : std::nullopt;
}

std::vector<ChatMessage> read_messages(Fields& fields, std::string_view name, MediaIntake& media) {
  std::vector<ChatMessage> out;
  const json::array* messages = fields.array(name);
  if (messages == nullptr || messages->empty() || messages->size() > kSizeLimit<"messages">) {
    fields.refuse(name, "an array of 1 to " + std::to_string(kSizeLimit<"messages">) + " messages");
    return out;
  }
  for (std::size_t i = 0; i < messages->size() && fields.ok(); ++i) {
    auto error = read_message((*messages)[i], item(name, i), media, out.emplace_back());
    if (error) fields.refuse(std::move(*error));
  }
  return out;
}

std::vector<Tool> read_tools(Fields& fields, std::vector<std::string>* skipped) {
  std::vector<Tool> out;
  const bool bare = fields.any("tools") == nullptr;
  const std::string_view name = bare ? "functions" : "tools";
  const json::array* tools = tools_within_limits(fields, name);
  for (std::size_t i = 0; tools != nullptr && i < tools->size() && fields.ok(); ++i) {
    const json::value& tool = (*tools)[i];
    if (!bare && skipped != nullptr && skip_tool(tool, "function", *skipped)) continue;
    if (auto error = read_tool(tool, item(name, i), bare, out.emplace_back())) fields.refuse(std::move(*error));
  }
  return out;
}

Result<void> prepare_sampling(const ServedModel& served, RequestDraft& draft, const ReasoningLimit* reasoning) {
  for (const auto& [text, bias] : draft.text_bias) {
    for (const Token token : served.model.tokenizer->tokenize(text, AddSpecial::no, ParseSpecial::yes)) {
      draft.sampling.logit_bias.push_back({token, bias});
    }
  }
  draft.text_bias.clear();
  const std::string& standing = served.config.defaults.grammar;
  if (!draft.grammar && !standing.empty()) draft.grammar.emplace().text = standing;
  if (!draft.sampling.seed) draft.sampling.seed = draft.deterministic ? 0 : random_seed();
  if (auto ok = check_sampling(draft.sampling, served.limits); !ok) return ok.error();
  const Grammar* grammar = draft.grammar ? &*draft.grammar : nullptr;
  auto parts = served.model.sampling->prepare(draft.sampling, grammar);
  if (!parts) return in_words_of(draft, parts.error());
  draft.parts = std::move(*parts);
  if (reasoning != nullptr) {
    draft.parts = limit_reasoning(std::move(draft.parts), *reasoning, *served.model.tokenizer);
  }
  return {};
}

Result<RequestPtr> request_from_draft(const ServedModel& served, RequestDraft draft, const ReasoningLimit* reasoning) {
  if (auto ready = prepare_sampling(served, draft, reasoning); !ready) return ready.error();
  return make_request(served.engine.next_id(), std::move(draft), served.limits, served.clock.now());
}

Result<std::vector<RequestPtr>> requests_from_draft(const ServedModel& served, RequestDraft draft, std::int32_t count,
                                                    const ReasoningLimit* reasoning) {
  std::vector<RequestPtr> out;
  if (!draft.sampling.seed) draft.sampling.seed = draft.deterministic ? 0 : random_seed();
  for (std::int32_t i = 0; i < count; ++i) {
    RequestDraft one = draft;
    *one.sampling.seed += static_cast<std::uint32_t>(i);
    auto request = request_from_draft(served, std::move(one), reasoning);
    if (!request) return request.error();
    out.push_back(std::move(*request));
  }
  return out;
}

Result<std::vector<RequestPtr>> requests_of_prompts(const ServedModel& served, const RequestDraft& draft,
                                                    std::vector<MediaPrompt> prompts, std::int32_t each) {
  if (prompts.size() * static_cast<std::size_t>(each) > kRequestsMax) {
    return invalid_field("prompt", "prompt may ask for at most " + std::to_string(kRequestsMax) +
                                       " answers altogether, those of n and best_of included");
  }
  if (draft.grammar) {
    const std::size_t copies = prompts.size() * static_cast<std::size_t>(each);
    if (auto ok = check_grammar_copies(draft.grammar->text, copies); !ok) return ok.error();
  }
  std::vector<RequestPtr> out;
  for (MediaPrompt& prompt : prompts) {
    RequestDraft one = draft;
    one.prompt = std::move(prompt.tokens);
    one.media = std::move(prompt.units);
    auto requests = requests_from_draft(served, std::move(one), each);
    if (!requests) return requests.error();
    out.insert(out.end(), requests->begin(), requests->end());
  }
  return out;
}

// The template may look into them, as a tree.
std::optional<Error> check_calls(const std::vector<ChatMessage>& messages) {
  std::size_t nodes = 0;
  std::size_t calls = 0;
  for (const ChatMessage& message : messages) {
    calls += message.tool_calls.size();
    for (const ToolCall& call : message.tool_calls) nodes += json_nodes(call.arguments);
  }
  if (calls > kSizeLimit<"tool_calls">) {
    return invalid_field("messages",
                         "messages may hold at most " + std::to_string(kSizeLimit<"tool_calls">) + " calls of tools");
  }
  if (nodes <= kSizeLimit<"json_nodes">) return std::nullopt;
  return invalid_field("messages", "messages must hold calls of tools with at most " +
                                       std::to_string(kSizeLimit<"json_nodes">) + " values in their arguments");
}

Result<MediaPrompt> prompt_of_chat(const ServedModel& served, const Chat& chat) {
  if (auto error = check_calls(chat.messages)) return *error;
  if (auto fits = check_texts_fit(served, chat); !fits) return fits.error();
  auto text = served.model.chat_template->render(chat);
  if (!text) return text.error();
  return read_media_text(served, *text, chat.media, "messages");
}

Result<std::vector<MediaPrompt>> read_prompts(const ServedModel& served, const json::value& prompt) {
  std::vector<MediaPrompt> out;
  const auto add = [&](const json::value& one) -> std::optional<Error> {
    auto read = read_media_prompt(served, one, "prompt");
    if (!read) return read.error();
    out.push_back(std::move(*read));
    return std::nullopt;
  };
  if (is_one_prompt(prompt)) {
    if (auto failed = add(prompt)) return *failed;
    return out;
  }
  const json::array& list = prompt.get_array();
  if (list.size() > kRequestsMax) {
    return invalid_field("prompt", "prompt may hold at most " + std::to_string(kRequestsMax) + " prompts");
  }
  for (const json::value& one : list) {
    if (auto failed = add(one)) return *failed;
  }
  return out;
}

Result<RequestPtr> request_from_prompt(const ServedModel& served, const json::value& prompt, RequestDraft draft) {
  auto prompts = read_prompts(served, prompt);
  if (!prompts) return prompts.error();
  if (prompts->size() != 1) return invalid_field("prompt", "prompt must be one prompt on this route");
  draft.prompt = std::move(prompts->front().tokens);
  draft.media = std::move(prompts->front().units);
  return request_from_draft(served, std::move(draft));
}

}  // namespace chasqui
