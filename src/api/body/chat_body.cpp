// read_chat() and requests_from_chat(): everything of a chat that decides what the template writes, what the model may
// say and how that is read.
#include <algorithm>
#include <limits>

#include "api/body/grammar_union.h"
#include "api/body/prompt.h"
#include "api/core/served_model.h"
#include "api/core/skipped_tools.h"
#include "base/limits.h"
#include "model/grammar_shape.h"
#include "model/prompt_boundaries.h"

namespace chasqui {
namespace {

namespace json = boost::json;

bool has_tool(const Chat& chat, std::string_view name) {
  return std::ranges::any_of(chat.tools, [name](const Tool& tool) { return tool.name == name; });
}

// {"type":"function","function":{"name":…}}, or with the name beside the type as in OpenAI's newer API.
void read_chosen_tool(Fields& fields, const json::object& object, Chat& chat) {
  Fields choice(object, "tool_choice");
  const json::value* inner = choice.any("function");
  Fields function(inner != nullptr && inner->is_object() ? inner->get_object() : object,
                  inner != nullptr ? "tool_choice.function" : "tool_choice");
  const auto name = function.string("name");
  if (!name || !has_tool(chat, *name)) function.refuse("name", "the name of one of the tools");
  if (!function.ok()) return fields.refuse(function.error());
  chat.tool_choice = ToolChoice::required;
  chat.only_tool = *name;
}

// {"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":…}}]}}
void read_allowed_tools(Fields& fields, const json::object& object, Chat& chat) {
  Fields choice(object, "tool_choice");
  const json::value* nested = choice.any("allowed_tools");
  const bool inside = nested != nullptr && nested->is_object();
  Fields allowed(inside ? nested->get_object() : object, inside ? "tool_choice.allowed_tools" : "tool_choice");
  const auto mode = allowed.string("mode");
  if (mode != "auto" && mode != "required") allowed.refuse("mode", "auto or required");
  const json::array* tools = allowed.array("tools");
  if (tools == nullptr || tools->empty() || tools->size() > kSizeLimit<"tools">) {
    allowed.refuse("tools", "an array of 1 to " + std::to_string(kSizeLimit<"tools">) + " tools");
  }
  std::vector<Tool> kept;
  std::vector<bool> taken(chat.tools.size());  // one that is named again is there already
  for (std::size_t i = 0; allowed.ok() && i < tools->size(); ++i) {
    const json::value& item = (*tools)[i];
    if (skip_tool(item, "function", chat.skipped_tools)) continue;
    const json::value* function = item.is_object() ? item.get_object().if_contains("function") : nullptr;
    const json::value& named = function != nullptr ? *function : item;
    const json::value* name = named.is_object() ? named.get_object().if_contains("name") : nullptr;
    const bool good = name != nullptr && name->is_string() && has_tool(chat, std::string_view(name->get_string()));
    if (!good) {
      allowed.refuse("tools", "an array of tools that are among the request's");
      break;
    }
    for (std::size_t j = 0; j < taken.size(); ++j) {
      if (taken[j] || chat.tools[j].name != std::string_view(name->get_string())) continue;
      taken[j] = true;
      kept.push_back(chat.tools[j]);
    }
  }
  if (!allowed.ok()) return fields.refuse(allowed.error());
  chat.tool_choice = mode == "required" ? ToolChoice::required : ToolChoice::automatic;
  chat.tools = std::move(kept);
}

void read_tool_choice(Fields& fields, Chat& chat) {
  constexpr std::string_view kAllowed =
      "auto, none, required, {\"type\":\"function\",\"function\":{\"name\":…}} or {\"type\":\"allowed_tools\",…}";
  const json::value* value = fields.any("tool_choice");
  if (value == nullptr) return;
  if (value->is_object()) {
    const json::value* type = value->get_object().if_contains("type");
    const std::string_view text = type != nullptr && type->is_string() ? std::string_view(type->get_string()) : "";
    if (text == "function") return read_chosen_tool(fields, value->get_object(), chat);
    if (text == "allowed_tools") return read_allowed_tools(fields, value->get_object(), chat);
    if (std::ranges::find(chat.skipped_tools, text) != chat.skipped_tools.end()) return;
    return fields.refuse("tool_choice", kAllowed);
  }
  const std::string_view text = value->is_string() ? std::string_view(value->get_string()) : "";
  if (text == "none") {
    chat.tool_choice = ToolChoice::none;
  } else if (text == "required") {
    // As in llama-server it means nothing where there are no tools.
    if (!chat.tools.empty()) chat.tool_choice = ToolChoice::required;
  } else if (text != "auto") {
    fields.refuse("tool_choice", kAllowed);
  }
}

// "none", "auto" or {"name":…}: what `tool_choice` was before.
void read_function_call(Fields& fields, Chat& chat) {
  const json::value* value = fields.any("function_call");
  if (value == nullptr || fields.any("tools") != nullptr) return;
  if (value->is_object()) {
    Fields call(value->get_object(), "function_call");
    const auto name = call.string("name");
    if (!name || !has_tool(chat, *name)) return fields.refuse("function_call.name", "the name of one of the functions");
    chat.tool_choice = ToolChoice::required;
    chat.only_tool = *name;
  } else if (*value == "none") {
    chat.tool_choice = ToolChoice::none;
  } else if (*value != "auto") {
    fields.refuse("function_call", "auto, none or {\"name\":…}");
  }
}

void read_template_args(Fields& fields, Chat& chat) {
  const json::object* args = fields.object("chat_template_kwargs");
  if (args == nullptr) return;
  if (args->size() > kSizeLimit<"template_args">) {
    return fields.refuse("chat_template_kwargs",
                         "an object of at most " + std::to_string(kSizeLimit<"template_args">) + " members");
  }
  std::size_t bytes = 0;
  for (const auto& [key, value] : *args) {
    std::string& text = chat.template_args[std::string(key)] = json::serialize(value);
    bytes += key.size() + text.size();
    if (bytes <= kSizeLimit<"template_arg_bytes">) continue;
    return fields.refuse("chat_template_kwargs",
                         "of at most " + std::to_string(kSizeLimit<"template_arg_bytes">) + " bytes as JSON");
  }
  Fields inner(*args, "chat_template_kwargs");
  if (const auto thinks = inner.boolean("enable_thinking")) chat.enable_thinking = thinks;
  if (!inner.ok()) fields.refuse(inner.error());
}

void read_reasoning(Fields& fields, Chat& chat) {
  if (const auto format = fields.string("reasoning_format")) {
    if (format != "auto" && format != "deepseek" && format != "deepseek-legacy" && format != "none") {
      fields.refuse("reasoning_format", "auto, deepseek, deepseek-legacy or none");
    }
    chat.split_reasoning = format != "none";
  }
  if (const auto enabled = fields.boolean("enable_thinking")) chat.enable_thinking = enabled;
  if (read_reasoning_budget(fields).budget == 0) chat.enable_thinking = false;
  const auto effort = fields.string("reasoning_effort");
  if (!effort || *effort == "default") return;
  set_reasoning_effort(chat, *effort, fields, "reasoning_effort");
}

// The control tokens that the answer's format is made of.
std::vector<Token> tokens_of_markers(const Tokenizer& tokenizer, const std::vector<std::string>& markers) {
  std::vector<Token> out;
  for (const std::string& marker : markers) {
    const auto tokens = tokenizer.tokenize(marker, AddSpecial::no, ParseSpecial::yes);
    if (tokens.size() == 1 && tokenizer.piece(tokens[0]).empty()) out.push_back(tokens[0]);
  }
  return out;
}

bool reasoning_is_over(const PreparedChat& prepared) {
  if (prepared.thinking_begin.empty()) return true;
  const std::size_t begun = prepared.answer_begin.rfind(prepared.thinking_begin);
  if (begun == std::string::npos) return true;
  const std::size_t from = begun + prepared.thinking_begin.size();
  return std::ranges::any_of(prepared.thinking_ends, [&](const std::string& end) {
    return prepared.answer_begin.find(end, from) != std::string::npos;
  });
}

// None where the template has no reasoning that could be ended.
std::optional<ReasoningLimit> limit_of(const Tokenizer& tokenizer, const ReasoningWish& wish,
                                       const PreparedChat& prepared) {
  if ((!wish.budget && !wish.control) || prepared.thinking_begin.empty() || prepared.thinking_ends.empty())
    return std::nullopt;
  const auto tokens = [&tokenizer](const std::string& text) {
    return tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::yes);
  };
  ReasoningLimit limit;
  limit.tokens = wish.budget.value_or(std::numeric_limits<TokenCount>::max());
  limit.begin = tokens(prepared.thinking_begin);
  for (const std::string& end : prepared.thinking_ends) limit.ends.push_back(tokens(end));
  limit.forced = tokens(wish.message + prepared.thinking_ends.front());
  // What the prompt has begun and ended itself is over; its end would count against the budget.
  if (!reasoning_is_over(prepared)) limit.begun = tokens(prepared.answer_begin);
  return limit;
}

ReasoningWish with_defaults(const RequestDefaults& defaults, ReasoningWish wish) {
  if (!wish.budget) wish.budget = defaults.reasoning_budget;
  if (wish.message.empty()) wish.message = defaults.reasoning_message;
  return wish;
}

std::string escaped_for_regex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Grammar grammar_of(const Tokenizer& tokenizer, const PreparedChat& prepared) {
  Grammar grammar;
  grammar.text = prepared.grammar;
  grammar.lazy = prepared.grammar_lazy;
  for (const GrammarTrigger& trigger : prepared.triggers) {
    grammar.trigger_patterns.push_back(trigger.pattern ? trigger.text : escaped_for_regex(trigger.text));
  }
  if (grammar.lazy || prepared.answer_begin.empty()) return grammar;
  grammar.begun = tokenizer.tokenize(prepared.answer_begin, AddSpecial::no, ParseSpecial::yes);
  // Some vocabularies put a space before the first control token.
  const std::string_view first = grammar.begun.empty() ? "" : tokenizer.special_piece(grammar.begun[0]);
  if (first.starts_with(' ') && prepared.answer_begin.front() != ' ') grammar.begun.erase(grammar.begun.begin());
  return grammar;
}

// Where a client gives both tools and a grammar or schema: an answer that has to call does so; one that may call does
// so or keeps to the grammar, from its first character on. True where the answer may be a call.
bool join_grammars(const Tokenizer& tokenizer, const Chat& chat, const PreparedChat& prepared, RequestDraft& draft) {
  if (!draft.grammar || prepared.grammar.empty()) return false;
  if (chat.tool_choice == ToolChoice::required) {
    draft.grammar = grammar_of(tokenizer, prepared);
    return true;
  }
  // A call after reasoning that the prompt has begun would have to be told apart from it: then only the grammar holds.
  if (!prepared.grammar_lazy || !reasoning_is_over(prepared)) return false;
  draft.grammar->text = grammar_of_either(draft.grammar->text, prepared.grammar);
  return true;
}

// True, false, or llama-server's names for the part that is gone on with.
std::optional<bool> read_continuation(Fields& fields, Chat& chat) {
  const json::value* value = fields.any("continue_final_message");
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  if (value->is_string() && value->get_string() == "content") {
    chat.continuation = Continuation::content;
  } else if (value->is_string() && value->get_string() == "reasoning_content") {
    chat.continuation = Continuation::reasoning;
  } else {
    fields.refuse("continue_final_message", "true, false, \"content\" or \"reasoning_content\"");
  }
  return true;
}

// Puts it behind what the draft has already.
void go_on_with(const ModelInfo& info, MediaPrompt added, RequestDraft& draft) {
  if (draft.prompt.empty()) {
    draft.prompt = std::move(added.tokens);
    draft.media = std::move(added.units);
    return;
  }
  const bool begins = info.adds_bos && !added.tokens.empty() && added.tokens.front() == info.bos;  // it is there
  const auto moved = static_cast<TokenCount>(draft.prompt.size()) - (begins ? 1 : 0);
  draft.prompt.insert(draft.prompt.end(), added.tokens.begin() + (begins ? 1 : 0), added.tokens.end());
  if (!added.units) return;
  MediaUnits units = *added.units;
  for (MediaUnit& unit : units) unit.begin += moved;
  draft.media = std::make_shared<const MediaUnits>(std::move(units));
}

// A program that has tools reads each answer, and comes back with what they say. With a tool that has to be called it
// wants the arguments, mostly, and is done.
bool is_loop(const Chat& chat) {
  const bool chooses = !chat.tools.empty() && chat.tool_choice == ToolChoice::automatic;
  return chooses || (!chat.messages.empty() && chat.messages.back().role == "tool");
}

}  // namespace

void set_reasoning_effort(Chat& chat, std::string_view effort, Fields& fields, std::string_view name) {
  constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
  if (std::ranges::find(kEfforts, effort) == std::end(kEfforts)) {
    return fields.refuse(name, "none, minimal, low, medium, high, xhigh or max");
  }
  if (effort == "none") {
    chat.enable_thinking = false;
  } else {
    chat.template_args["reasoning_effort"] = json::serialize(json::value(effort));
  }
}

ReasoningWish read_reasoning_budget(Fields& fields) {
  ReasoningWish wish;
  for (const std::string_view name : {"reasoning_budget", "reasoning_budget_tokens", "thinking_budget_tokens"}) {
    const auto budget = fields.integer(name);
    if (!budget || *budget == -1) continue;
    if (*budget < 0 || *budget > std::numeric_limits<TokenCount>::max()) {
      fields.refuse(name, "a whole number of tokens, or -1 for no limit");
    } else {
      wish.budget = static_cast<TokenCount>(*budget);
    }
  }
  constexpr std::size_t kMessageBytes = kSizeLimit<"reasoning_message_bytes">;
  wish.message = fields.string("reasoning_budget_message").value_or("");
  if (wish.message.size() > kMessageBytes) {
    fields.refuse("reasoning_budget_message", "text of at most " + std::to_string(kMessageBytes) + " bytes");
  }
  wish.control = fields.boolean("reasoning_control").value_or(false);
  return wish;
}

void read_chat_switches(Fields& fields, Chat& chat) {
  chat.tools = read_tools(fields, &chat.skipped_tools);
  if (!fields.ok()) return;
  read_tool_choice(fields, chat);
  read_function_call(fields, chat);
  chat.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  read_template_args(fields, chat);
  read_reasoning(fields, chat);
}

Chat new_chat(const RequestDefaults& defaults) {
  Chat chat;
  chat.template_args = defaults.template_args;
  chat.enable_thinking = defaults.enable_thinking;
  if (defaults.reasoning_budget == 0) chat.enable_thinking = false;
  chat.split_reasoning = defaults.split_reasoning;
  chat.parse_answer = defaults.parse_answers;
  return chat;
}

bool goes_on_with_last(const RequestDefaults& defaults, const Chat& chat) {
  const ChatMessage& last = chat.messages.back();
  return defaults.prefill && last.role == "assistant" && last.tool_calls.empty();
}

Chat read_chat(Fields& fields, const RequestDefaults& defaults, const MediaReader* media) {
  Chat chat = new_chat(defaults);
  MediaIntake intake(media, defaults.media_folder);
  chat.messages = read_messages(fields, "messages", intake);
  if (!fields.ok()) return chat;
  collect_media(chat);
  read_chat_switches(fields, chat);
  // An answer that is there already is gone on with, unless the client says otherwise.
  const ChatMessage& last = chat.messages.back();
  const bool prefilled = goes_on_with_last(defaults, chat);
  const auto prompts = fields.boolean("add_generation_prompt");
  chat.continue_final_message = read_continuation(fields, chat).value_or(prefilled && !prompts);
  chat.add_generation_prompt = prompts.value_or(!chat.continue_final_message);
  if (chat.continue_final_message && fields.ok() && last.role != "assistant") {
    fields.refuse("continue_final_message", "false unless the last message is an assistant's");
  }
  if (chat.continue_final_message && fields.ok() && !last.tool_calls.empty()) {
    fields.refuse("continue_final_message", "false where the last message calls tools");
  }
  return chat;
}

Result<ChatRequests> requests_from_chat(const ServedModel& served, const Chat& chat, RequestDraft draft,
                                        std::int32_t count, const ReasoningWish& reasoning) {
  if (auto error = check_calls(chat.messages)) return *error;
  if (auto fits = check_texts_fit(served, chat); !fits) return fits.error();
  auto prepared = served.model.chat_template->prepare(chat);
  if (!prepared) return prepared.error();
  const Tokenizer& tokenizer = *served.model.tokenizer;
  auto prompt = read_media_text(served, prepared->prompt, chat.media, "messages");
  if (!prompt) return prompt.error();
  const bool goes_on = !draft.prompt.empty();
  go_on_with(served.model.info, std::move(*prompt), draft);
  draft.returns = draft.returns || is_loop(chat);
  if (served.limits.checkpoint_every > 0 && !goes_on) {
    draft.boundaries = prompt_boundaries(*served.model.chat_template, tokenizer, chat, prepared->prompt, draft.prompt);
  }
  ChatRequests out;
  std::optional<ReasoningLimit> limit;
  const bool calls = join_grammars(tokenizer, chat, *prepared, draft);
  // What has to obey a client's own grammar alone is content, whatever it looks like.
  if (!draft.grammar || calls) {
    out.format = std::move(prepared->format);
    limit = limit_of(tokenizer, with_defaults(served.config.defaults, reasoning), *prepared);
    if (limit && reasoning.control) {
      out.reasoning_switch = std::make_shared<ReasoningSwitch>();
      out.reasoning_switch->tenant = draft.tenant.id;
      limit->end_now = {out.reasoning_switch, &out.reasoning_switch->end};
    }
  }
  if (!prepared->grammar.empty()) {
    if (auto ok = check_grammar_shape(prepared->grammar); !ok) {
      return invalid_field("tools", "tools cannot be kept to: their " + ok.error().message);
    }
    if (!draft.grammar) {
      draft.grammar = grammar_of(tokenizer, *prepared);
      draft.grammar_field = "tools";
    }
  }
  draft.shown_tokens = tokens_of_markers(tokenizer, prepared->markers);
  for (std::string& stop : prepared->stops) {
    if (draft.stop.size() < served.limits.stops_max) draft.stop.push_back(std::move(stop));
  }
  auto requests = requests_from_draft(served, std::move(draft), count, limit ? &*limit : nullptr);
  if (!requests) return requests.error();
  out.requests = std::move(*requests);
  return out;
}

}  // namespace chasqui
