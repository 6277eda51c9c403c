#include "model/llama_chat_template.h"

#include <array>
#include <ctime>
#include <exception>
#include <optional>

#include <chat-auto-parser-helpers.h>
#include <chat-auto-parser.h>
#include <chat-peg-parser.h>
#include <chat.h>
#include <llama.h>

#include "base/limits.h"
#include "base/log.h"
#include "model/peg_answer_parser.h"
#include "model/schema_grammar.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

// To find out what a template does it is rendered some dozen times.
constexpr Duration kAnalysesMax = 10 * kTimeLimit<"template_seconds">;

common_chat_msg to_common(const ChatMessage& message) {
  common_chat_msg out;
  out.role = message.role;
  if (message.parts.empty()) out.content = message.content;
  for (const std::string& part : message.parts) out.content_parts.push_back({"text", part});
  out.reasoning_content = message.reasoning;
  out.tool_name = message.name;
  out.tool_call_id = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls) {
    out.tool_calls.push_back({call.name, call.arguments.empty() ? "{}" : call.arguments, call.id});
  }
  return out;
}

common_chat_tool to_common(const Tool& tool) {
  constexpr const char* kNoParameters = R"({"type":"object","properties":{}})";
  return {tool.name, tool.description, tool.parameters.empty() ? kNoParameters : tool.parameters};
}

common_chat_tool_choice to_common(ToolChoice choice) {
  switch (choice) {
    case ToolChoice::none: return COMMON_CHAT_TOOL_CHOICE_NONE;
    case ToolChoice::required: return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    case ToolChoice::automatic: break;
  }
  return COMMON_CHAT_TOOL_CHOICE_AUTO;
}

common_chat_continuation to_common(Continuation continuation) {
  switch (continuation) {
    case Continuation::content: return COMMON_CHAT_CONTINUATION_CONTENT;
    case Continuation::reasoning: return COMMON_CHAT_CONTINUATION_REASONING;
    case Continuation::automatic: break;
  }
  return COMMON_CHAT_CONTINUATION_AUTO;
}

common_chat_templates_inputs to_common(const Chat& chat) {
  common_chat_templates_inputs inputs;
  for (const ChatMessage& message : chat.messages) inputs.messages.push_back(to_common(message));
  for (const Tool& tool : chat.tools) inputs.tools.push_back(to_common(tool));
  inputs.add_generation_prompt = chat.add_generation_prompt;
  if (chat.continue_final_message && chat.messages.back().role == "assistant") {
    inputs.continue_final_message = to_common(chat.continuation);
    inputs.add_generation_prompt = false;
  }
  inputs.tool_choice = to_common(chat.tool_choice);
  inputs.parallel_tool_calls = chat.parallel_tool_calls;
  inputs.reasoning_format =
      chat.split_reasoning && chat.parse_answer ? COMMON_REASONING_FORMAT_DEEPSEEK : COMMON_REASONING_FORMAT_NONE;
  inputs.enable_thinking = chat.enable_thinking.value_or(true);
  inputs.chat_template_kwargs = chat.template_args;
  if (chat.enable_thinking) inputs.chat_template_kwargs["enable_thinking"] = *chat.enable_thinking ? "true" : "false";
  inputs.json_schema = chat.json_schema;
  return inputs;
}

GrammarTrigger to_trigger(const common_grammar_trigger& trigger) {
  switch (trigger.type) {
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN: return {true, trigger.value};
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL: return {true, '^' + trigger.value + '$'};
    default: return {false, trigger.value};
  }
}

// Where a call is required llama-common's grammars still let the model talk as long as it likes before it. Here they do
// not: the rules for such talk, which are named after its parser, match nothing.
std::string without_talk(const std::string& grammar, const std::string& parser) {
  common_peg_arena arena;
  arena.load(parser);
  std::string out = grammar;
  for (std::size_t id = 0; id < arena.size(); ++id) {
    const auto* tag = std::get_if<common_peg_tag_parser>(&arena.get(id));
    if (tag == nullptr || tag->tag != common_chat_peg_builder::CONTENT) continue;
    if (!std::holds_alternative<common_peg_until_parser>(arena.get(tag->child))) continue;
    const std::string rule = "until-" + std::to_string(tag->child) + " ::= ";
    const std::size_t begin = out.starts_with(rule) ? 0 : out.find('\n' + rule) + 1;
    if (begin == 0 && !out.starts_with(rule)) continue;
    const std::size_t end = out.find('\n', begin);
    out.replace(begin, end - begin, rule + "\"\"");
  }
  return out;
}

// Where calls stand side by side without a section round them, llama-common's grammars allow several, whatever was
// said.
std::string with_one_call(std::string grammar) {
  constexpr std::string_view kRule = "tool-calls ::= ";
  const std::size_t begin = grammar.starts_with(kRule) ? 0 : grammar.find("\n" + std::string(kRule));
  if (begin == std::string::npos) return grammar;
  const std::size_t end = std::min(grammar.find('\n', begin + 1), grammar.size());
  if (grammar[end - 1] == '+') grammar.erase(end - 1, 1);
  return grammar;
}

PreparedChat to_prepared(common_chat_params params, bool continues, bool calls, bool parallel) {
  if (!parallel) params.grammar = with_one_call(std::move(params.grammar));
  if (calls && !params.grammar.empty() && !params.grammar_lazy)
    params.grammar = without_talk(params.grammar, params.parser);
  PreparedChat out;
  PegAnswerSource source;
  source.parser = std::move(params.parser);
  source.format = params.format;
  source.answer_begin = params.generation_prompt;
  source.continues = continues;
  out.format = make_peg_answer_format(source);
  out.prompt = std::move(params.prompt);
  out.answer_begin = std::move(params.generation_prompt);
  out.grammar = std::move(params.grammar);
  out.grammar_lazy = params.grammar_lazy;
  for (const common_grammar_trigger& trigger : params.grammar_triggers) out.triggers.push_back(to_trigger(trigger));
  out.markers = std::move(params.preserved_tokens);
  out.stops = std::move(params.additional_stops);
  out.thinking_begin = std::move(params.thinking_start_tag);
  out.thinking_ends = std::move(params.thinking_end_tags);
  return out;
}

std::string date(std::chrono::system_clock::time_point time, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}

// What templates want to be different in the messages, as common_chat_templates_apply() does it.
void adapt_messages(common_json& messages, const jinja::caps& caps) {
  for (common_json& message : messages) {
    if (message.contains("role") && message["role"] == "developer") message["role"] = "system";
    if (!message.contains("tool_calls")) continue;
    if (caps.supports_tool_calls && !message.contains("content")) message["content"] = "";
    if (!caps.supports_object_arguments) continue;
    for (common_json& call : message["tool_calls"]) {
      if (!call.contains("function") || !call["function"].contains("arguments")) continue;
      common_json& arguments = call["function"]["arguments"];
      if (arguments.is_string()) arguments = common_json::parse(arguments.get<std::string>());
    }
  }
}

}  // namespace

struct LlamaChatTemplate::Impl {
  common_chat_templates_ptr templates;
  // With what llama-common would find out about a template for each request again. Absent where its own way through
  // a template is another one: formats that it knows by name, and templates that it works around.
  std::unique_ptr<common_chat_template> analysed;
  autoparser::autoparser analysis;
  bool add_bos = false;
  bool add_eos = false;

  void analyse(const LlamaWeights& weights);
  autoparser::generation_params params_of(const common_chat_templates_inputs& inputs) const;
  common_chat_params apply(const common_chat_templates_inputs& inputs) const;
};

TranscriptionPrompt LlamaChatTemplate::transcription_prompt() const {
  const common_chat_prompt_preset preset = common_chat_get_asr_prompt(impl_->templates.get());
  return {preset.system, preset.user};
}

void LlamaChatTemplate::Impl::analyse(const LlamaWeights& weights) {
  const std::string source = common_chat_templates_source(templates.get());
  const llama_vocab* vocab = weights.vocab();
  const auto text_of = [vocab](llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : common_token_to_piece(vocab, token, true);
  };
  auto made =
      std::make_unique<common_chat_template>(source, text_of(llama_vocab_bos(vocab)), text_of(llama_vocab_eos(vocab)));
  const bool tools_have_their_own = !common_chat_templates_source(templates.get(), "tool_use").empty();
  const bool step_fun = source.find("You have access to the following functions in JSONSchema") != std::string::npos;
  if (tools_have_their_own || step_fun || !made->caps.supports_system_role) return;
  add_bos = llama_vocab_get_add_bos(vocab);
  add_eos = llama_vocab_get_add_eos(vocab);
  common_chat_templates_inputs probe;
  probe.messages.emplace_back();
  probe.messages.back().role = "user";
  probe.messages.back().content = "x";
  try {
    analysed = std::move(made);
    autoparser::generation_params params = params_of(probe);
    if (!common_chat_try_specialized_template(*analysed, source, params)) {
      analysis.analyze_template(*analysed);
      return;
    }
  } catch (const std::exception&) {
    // Then each request finds out what is wrong.
  }
  analysed.reset();
}

autoparser::generation_params LlamaChatTemplate::Impl::params_of(const common_chat_templates_inputs& inputs) const {
  autoparser::generation_params params;
  params.tools = common_chat_tools_to_json_oaicompat(inputs.tools);
  params.messages = common_json::array();
  for (const common_chat_msg& message : inputs.messages) params.messages.push_back(message.to_json_oaicompat());
  params.tool_choice = inputs.tool_choice;
  params.reasoning_format = inputs.reasoning_format;
  params.enable_thinking = inputs.enable_thinking;
  params.now = inputs.now;
  params.add_generation_prompt = inputs.add_generation_prompt;
  params.add_bos = add_bos;
  params.add_eos = add_eos;
  params.continue_final_message = inputs.continue_final_message;
  if (params.continue_final_message != COMMON_CHAT_CONTINUATION_NONE) {
    params.continue_msg = inputs.messages.back();
    params.messages.erase(params.messages.size() - 1);
    const common_chat_msg& last = params.continue_msg;
    const bool reasons = !last.reasoning_content.empty() && last.content.empty() && last.content_parts.empty();
    if (params.continue_final_message == COMMON_CHAT_CONTINUATION_AUTO) {
      params.continue_final_message = reasons ? COMMON_CHAT_CONTINUATION_REASONING : COMMON_CHAT_CONTINUATION_CONTENT;
    }
  }
  adapt_messages(params.messages, analysed->caps);
  params.extra_context = common_json::object();
  params.extra_context["datetime"] = date(inputs.now, "%b %d %Y");
  params.extra_context["date_string"] = date(inputs.now, "%d %b %Y");
  for (const auto& [key, json] : inputs.chat_template_kwargs) params.extra_context[key] = common_json::parse(json);
  if (!inputs.json_schema.empty()) params.json_schema = common_json::parse(inputs.json_schema);
  params.parallel_tool_calls = inputs.parallel_tool_calls;
  return params;
}

common_chat_params LlamaChatTemplate::Impl::apply(const common_chat_templates_inputs& inputs) const {
  if (!analysed) return common_chat_templates_apply(templates.get(), inputs);
  common_chat_params made = autoparser::peg_generator::generate_parser(*analysed, params_of(inputs), analysis);
  made.supports_thinking = analysis.reasoning.mode != autoparser::reasoning_mode::NONE;
  if (made.supports_thinking) {
    made.thinking_start_tag = trim_whitespace(analysis.reasoning.start);
    std::string end = trim_whitespace(analysis.reasoning.end);
    if (!end.empty()) made.thinking_end_tags = {std::move(end)};
  }
  return made;
}

LlamaChatTemplate::LlamaChatTemplate(WeightsPtr weights, std::unique_ptr<Impl> impl)
    : weights_(std::move(weights)),
      impl_(std::move(impl)),
      source_(common_chat_templates_source(impl_->templates.get())),
      explicit_(common_chat_templates_was_explicit(impl_->templates.get())) {}

LlamaChatTemplate::~LlamaChatTemplate() = default;

Result<std::unique_ptr<LlamaChatTemplate>> LlamaChatTemplate::make(WeightsPtr weights, const std::string& source) {
  auto impl = std::make_unique<Impl>();
  const WorkBudget budget(kAnalysesMax);
  try {
    impl->templates = common_chat_templates_init(weights->model(), source);
    impl->analyse(*weights);
  } catch (const std::exception& e) {
    return invalid_field("chat_template", std::string("The chat template does not parse: ") + e.what());
  }
  std::unique_ptr<LlamaChatTemplate> made(new LlamaChatTemplate(std::move(weights), std::move(impl)));
  if (!made->is_explicit()) log_warning("the model has no chat template; ChatML takes its place");
  return made;
}

bool LlamaChatTemplate::is_analysed() const { return impl_->analysed != nullptr; }

namespace {

// A conversion that failed says nothing of which schema it was.
Error why_not_prepared(const Chat& chat, const WorkBudget& budget, const std::exception& failed) {
  if (budget.is_too_deep() && budget.last_work() == WorkBudget::Work::schema) {
    return invalid_field("tools",
                         "tools: a schema of parameters is nested too deeply, or leads back to itself within allOf");
  }
  if (budget.is_used_up() && budget.last_work() == WorkBudget::Work::schema) {
    return invalid_field("tools", "tools are too complex to make a grammar of");
  }
  if (budget.is_used_up() && budget.last_work() == WorkBudget::Work::answer) {
    return invalid_field("messages",
                         "messages: the last one, with which the answer begins, is too large or nested too deeply");
  }
  if (budget.is_used_up()) {
    return invalid_field("messages",
                         "The model's chat template computes for too long over these messages, tools and "
                         "chat_template_kwargs; send fewer.");
  }
  for (std::size_t i = 0; i < chat.tools.size(); ++i) {
    const auto converted = check_tool_schema(to_common(chat.tools[i]).parameters);
    if (converted || budget.is_used_up()) continue;
    return invalid_field("tools", "tools: the schema of the parameters of \"" + chat.tools[i].name +
                                      "\" cannot be used: " + converted.error().message);
  }
  return invalid_field("messages", std::string("The model's chat template refuses these messages: ") + failed.what());
}

// `apply` is called for what the model is shown, and, where it may call one of the tools only, for that one alone.
template <class Apply>
Result<PreparedChat> prepare_with(const Chat& chat, Apply apply) {
  if (chat.messages.empty()) return invalid_field("messages", "messages must have at least one message");
  const WorkBudget budget(kTimeLimit<"template_seconds">);
  try {
    common_chat_templates_inputs inputs = to_common(chat);
    const bool continues = inputs.continue_final_message != COMMON_CHAT_CONTINUATION_NONE;
    const bool calls = chat.tool_choice == ToolChoice::required && !chat.tools.empty();
    PreparedChat prepared = to_prepared(apply(inputs), continues, calls, chat.parallel_tool_calls);
    if (!chat.parse_answer) {
      PreparedChat plain;
      plain.prompt = std::move(prepared.prompt);
      return plain;
    }
    if (chat.only_tool.empty()) return prepared;
    std::erase_if(inputs.tools, [&chat](const common_chat_tool& tool) { return tool.name != chat.only_tool; });
    inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    PreparedChat only = to_prepared(apply(inputs), continues, calls, chat.parallel_tool_calls);
    only.prompt = std::move(prepared.prompt);
    return only;
  } catch (const std::exception& e) {
    return why_not_prepared(chat, budget, e);
  }
}

}  // namespace

Result<PreparedChat> LlamaChatTemplate::prepare(const Chat& chat) const {
  return prepare_with(chat, [this](const common_chat_templates_inputs& inputs) { return impl_->apply(inputs); });
}

Result<PreparedChat> LlamaChatTemplate::prepare_slowly(const Chat& chat) const {
  return prepare_with(chat, [this](const common_chat_templates_inputs& inputs) {
    return common_chat_templates_apply(impl_->templates.get(), inputs);
  });
}

Result<std::string> LlamaChatTemplate::render(const Chat& chat) const {
  auto prepared = prepare(chat);
  if (!prepared) return prepared.error();
  return std::move(prepared->prompt);
}

}  // namespace chasqui
