#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/gap_tokens.h"
#include "api/body/generation_fields.h"
#include "api/body/prompt.h"
#include "api/core/answer.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/ollama/keep_alive.h"
#include "api/ollama/ollama.h"
#include "api/openai/openai_body.h"
#include "base/limits.h"
#include "base/rfc3339.h"
#include "model/chat_history.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kMessagesMax = kSizeLimit<"messages">;
constexpr int kEstimates = 6;

// What both routes have.
struct OllamaBody {
  RequestDraft draft;
  ReasoningWish reasoning;
  bool stream = true;
  std::optional<Duration> keep_alive;
};

// `options` has our names but for a few. Others are about how Ollama loads a model, and ours is loaded.
void read_options(const ServedModel& served, const Caller& caller, Fields& fields, RequestDraft& draft) {
  const json::object* object = fields.object("options");
  if (object == nullptr) return;
  Fields options(*object, "options");
  read_common_fields(caller, options, draft);
  if (options.any("lora") != nullptr) read_adapters(served, options, draft);
  if (!draft.grammar) read_constraint(options, draft);
  if (const auto most = options.integer("num_predict")) {
    // Anything but a number above 0: until the context is full.
    if (*most < -2) options.refuse("num_predict", "at least -2");
    draft.max_tokens = *most > 0 ? *most : -1;
  }
  // Whatever is below 0 is all of the prompt there.
  const auto keep = options.integer("num_keep");
  if (keep && !draft.keep) draft.keep = std::max<std::int64_t>(*keep, -1);
  options.integer("num_ctx");
  if (!options.ok()) fields.refuse(options.error());
}

// "json", a schema, or "" for neither.
void read_format(Fields& fields, RequestDraft& draft) {
  const json::value* format = fields.any("format");
  if (format == nullptr || (format->is_string() && format->get_string().empty())) return;
  if (draft.grammar) return fields.refuse("format", "left out where grammar or json_schema say the same");
  const bool named = format->is_string() && format->get_string() == "json";
  if (!named && !format->is_object()) return fields.refuse("format", "\"json\" or a JSON Schema");
  const json::value any = json::object{{"type", "object"}};
  if (auto taken = take_schema(named ? any : *format, "format", false, draft); !taken) fields.refuse(taken.error());
}

std::optional<Duration> read_keep_alive(Fields& fields) {
  const json::value* keep = fields.any("keep_alive");
  if (keep == nullptr) return std::nullopt;
  if (keep->is_number()) return keep_alive_of(fields.number("keep_alive").value_or(-1));
  const auto time = keep->is_string() ? parse_keep_alive(std::string_view(keep->get_string())) : std::nullopt;
  if (!time) fields.refuse("keep_alive", "a number of seconds, or a duration such as \"5m\"");
  return time;
}

// true, false, or how much.
void read_think(Fields& fields, Chat& chat) {
  chat.split_reasoning = true;
  const json::value* think = fields.any("think");
  if (think == nullptr) return;
  if (think->is_bool()) {
    chat.enable_thinking = think->get_bool();
  } else if (think->is_string()) {
    set_reasoning_effort(chat, std::string_view(think->get_string()), fields, "think");
  } else {
    fields.refuse("think", "true, false, \"low\", \"medium\" or \"high\"");
  }
}

// "logprobs": true and "top_logprobs": 3, as in OpenAI's chat.
void read_logprobs_wish(Fields& fields, RequestDraft& draft) {
  const bool asked = fields.boolean("logprobs").value_or(false);
  const std::int64_t count = fields.integer("top_logprobs").value_or(0);
  if (count < 0 || count > kCountLimit<"top_logprobs">) {
    fields.refuse("top_logprobs", "between 0 and " + std::to_string(kCountLimit<"top_logprobs">));
  } else if (asked) {
    draft.sampling.chances = static_cast<std::int32_t>(count);
  }
}

// What an earlier answer has told as `context`: its tokens go before the prompt.
void read_context(const ServedModel& served, Fields& fields, RequestDraft& draft) {
  const json::array* ids = fields.array("context");
  if (ids == nullptr || !fields.ok()) return;
  auto tokens = read_tokens(served, *ids, "context");
  if (!tokens) return fields.refuse(tokens.error());
  draft.prompt = std::move(*tokens);
}

OllamaBody read_body(const ServedModel& served, const Caller& caller, Fields& fields) {
  OllamaBody out;
  out.draft = new_draft(served, caller);
  read_common_fields(caller, fields, out.draft);
  read_adapters(served, fields, out.draft);
  read_constraint(fields, out.draft);
  read_options(served, caller, fields, out.draft);
  read_format(fields, out.draft);
  refuse_unsupported(fields, {"template"});
  read_logprobs_wish(fields, out.draft);
  out.reasoning = read_reasoning_budget(fields);
  out.stream = fields.boolean("stream").value_or(true);
  out.keep_alive = read_keep_alive(fields);
  return out;
}

Answer loaded(const ServedModel& served, OllamaShape shape, std::optional<Duration> keep_alive) {
  Answer answer;
  answer.keep_alive = keep_alive;
  const bool unload = keep_alive == Duration::zero();
  answer.ready = ollama_loaded(shape, served.config.name, rfc3339(served.clock.unix_seconds()), unload);
  return answer;
}

Answer told(const ServedModel& served, OllamaShape shape, std::vector<RequestPtr> requests, const OllamaBody& body,
            AnswerFormatPtr format) {
  OllamaHead head;
  head.shape = shape;
  head.model = served.config.name;
  head.created_at = rfc3339(served.clock.unix_seconds());
  if (requests.front()->sampling.chances >= 0) head.tokenizer = served.model.tokenizer.get();
  if (requests.front()->keep_tokens) head.context = requests.front();
  auto writer = make_ollama_writer(std::move(head), std::move(format));
  Answer answer = answer_of(std::move(requests), body.stream, std::move(writer));
  answer.keep_alive = body.keep_alive;
  return answer;
}

// As Ollama does, pictures stand before the text of their message.
std::optional<Error> take_images(Fields& fields, MediaIntake& media, ChatMessage& message) {
  const json::array* images = fields.array("images");
  if (!fields.ok()) return fields.error();
  if (images == nullptr || images->empty()) return std::nullopt;
  const std::vector<std::string> texts = std::exchange(message.parts, {});
  if (auto error = media.take_images(*images, fields.path_of("images"), message)) return error;
  if (texts.empty()) message.add_part(std::string(message.content));
  for (const std::string& text : texts) message.add_part(text);
  media.join_parts(message);
  return std::nullopt;
}

// Ollama's names for what OpenAI's messages have, too.
std::optional<Error> read_ollama_message(const json::value& value, const std::string& path, MediaIntake& media,
                                         ChatMessage& message) {
  if (!value.is_object()) return invalid_field(path, path + " must be an object with role and content");
  json::object object;
  for (const auto& [name, member] : value.get_object()) {
    if (name != "images") object[name] = member;  // which are long
  }
  Fields fields(value.get_object(), path);
  if (fields.any("content") == nullptr) object["content"] = "";
  if (const auto thinking = fields.string("thinking")) object["reasoning_content"] = *thinking;
  if (const auto tool = fields.string("tool_name")) object["name"] = *tool;
  if (!fields.ok()) return fields.error();
  if (auto error = read_message(object, path, media, message)) return error;
  return take_images(fields, media, message);
}

// The prompt as it stands, or with a gap behind it.
Result<Answer> raw_generate(const ServedModel& served, OllamaBody body, std::string_view prompt,
                            std::string_view suffix) {
  auto tokens = tokenize_prompt(served, prompt);
  if (!tokens) return tokens.error();
  if (!suffix.empty()) {
    const auto after = read_suffix(served, suffix);
    if (!after) return after.error();
    tokens = around_gap(served, std::move(*tokens), *after);
    if (!tokens) return tokens.error();
  }
  body.draft.prompt.insert(body.draft.prompt.end(), tokens->begin(), tokens->end());
  auto requests = requests_from_draft(served, std::move(body.draft), 1);
  if (!requests) return requests.error();
  return told(served, OllamaShape::generate, std::move(*requests), body, nullptr);
}

// The chat from this message on; those of the system stay, and no result of a tool is left without its call.
Chat chat_from(const Chat& chat, std::size_t from) {
  while (from + 1 < chat.messages.size() && chat.messages[from].role == "tool") ++from;
  Chat out = chat;
  out.messages.clear();
  for (std::size_t i = 0; i < chat.messages.size(); ++i) {
    if (i >= from || chat.messages[i].role == "system") out.messages.push_back(chat.messages[i]);
  }
  collect_media(out);
  return out;
}

// Where not all messages fit, Ollama leaves the oldest out, and its clients count on that. Nothing: what was said last
// is too long by itself, or the budget is over.
std::optional<Chat> without_oldest(const ServedModel& served, const Chat& chat, std::optional<std::int64_t> answer,
                                   const WorkBudget& budget) {
  const std::int64_t context = served.limits.context;
  const std::int64_t reserved = answer.value_or(-1) > 0 ? std::min(*answer, context / 2) : context / 4;
  const auto room = static_cast<std::size_t>(context - reserved);
  const auto tokens_from = [&](std::size_t from) {
    const auto prompt = prompt_of_chat(served, chat_from(chat, from));
    return prompt ? prompt->tokens.size() : SIZE_MAX;
  };
  std::size_t last = chat.messages.size() - 1;
  while (last > 0 && chat.messages[last].role == "tool") --last;
  if (last == 0 || tokens_from(last) >= room) return std::nullopt;
  std::vector<std::size_t> bytes(chat.messages.size());  // from each message on
  for (std::size_t i = bytes.size(), sum = 0; i-- > 0;) bytes[i] = sum += bytes_of(chat.messages[i]);
  // To look takes as long as to render and tokenize, so the first looks are where the bytes of the one before say that
  // the end of the room is.
  std::size_t out = 0;  // does not fit
  std::size_t middle = last / 2;
  for (int looks = 0; last - out > 1 && !budget.is_over(); ++looks) {
    middle = std::clamp(middle, out + 1, last - 1);
    const std::size_t tokens = tokens_from(middle);
    const std::size_t fit = tokens != SIZE_MAX ? bytes[middle] * room / std::max<std::size_t>(tokens, 1) : 0;
    (tokens < room ? last : out) = middle;
    middle = (out + last) / 2;
    if (fit > 0 && looks < kEstimates) {
      const auto estimate =
          std::partition_point(bytes.begin(), bytes.end(), [&](std::size_t most) { return most > fit; });
      middle = static_cast<std::size_t>(estimate - bytes.begin());
    }
  }
  // A look that was cut short says that it does not fit.
  return budget.is_over() ? std::nullopt : std::optional<Chat>(chat_from(chat, last));
}

// As requests_from_chat(), of as many messages as fit.
Result<ChatRequests> requests_from_ollama_chat(const ServedModel& served, const Chat& chat, const OllamaBody& body,
                                               bool truncates) {
  auto made = requests_from_chat(served, chat, body.draft, 1, body.reasoning);
  if (made || !truncates || made.error().code != ErrorCode::context_too_long) return made;
  std::optional<Chat> shorter;
  {
    const WorkBudget budget(kTimeLimit<"template_seconds">);  // for all renderings together
    shorter = without_oldest(served, chat, body.draft.max_tokens, budget);
    if (budget.is_over()) {
      return invalid_field("messages",
                           "It computes for too long to find how many of these messages fit the context; send fewer.");
    }
  }
  return shorter ? requests_from_chat(served, *shorter, body.draft, 1, body.reasoning) : std::move(made);
}

}  // namespace

Chat read_ollama_chat(Fields& fields, const RequestDefaults& defaults, const MediaReader* media) {
  Chat chat = new_chat(defaults);
  MediaIntake intake(media, defaults.media_folder);
  const json::array* messages = fields.array("messages");
  if (messages != nullptr && messages->size() > kMessagesMax) {
    fields.refuse("messages", "an array of at most " + std::to_string(kMessagesMax) + " messages");
  }
  for (std::size_t i = 0; messages != nullptr && i < messages->size() && fields.ok(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + ']';
    auto error = read_ollama_message((*messages)[i], path, intake, chat.messages.emplace_back());
    if (error) fields.refuse(std::move(*error));
  }
  chat.tools = read_tools(fields, &chat.skipped_tools);
  read_think(fields, chat);
  if (!fields.ok() || chat.messages.empty()) return chat;
  collect_media(chat);
  chat.continue_final_message = goes_on_with_last(defaults, chat);
  chat.add_generation_prompt = !chat.continue_final_message;
  return chat;
}

Result<Answer> prepare_ollama_chat(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  OllamaBody common = read_body(served, caller, fields);
  const Chat chat = read_ollama_chat(fields, served.config.defaults, served.model.media.get());
  const bool truncates = fields.boolean("truncate").value_or(true);
  if (!fields.ok()) return fields.error();
  if (chat.messages.empty()) return loaded(served, OllamaShape::chat, common.keep_alive);
  auto made = requests_from_ollama_chat(served, chat, common, truncates);
  if (!made) return made.error();
  Answer answer = told(served, OllamaShape::chat, std::move(made->requests), common, std::move(made->format));
  answer.skipped_tools = chat.skipped_tools;
  return answer;
}

Result<Answer> prepare_ollama_generate(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  OllamaBody common = read_body(served, caller, fields);
  const std::string_view prompt = fields.string("prompt").value_or("");
  const std::string_view suffix = fields.string("suffix").value_or("");
  const auto system = fields.string("system");
  const bool raw = fields.boolean("raw").value_or(false);
  const json::array* images = fields.array("images");
  const bool pictured = images != nullptr && !images->empty();
  if (raw && system && !system->empty()) fields.refuse("system", "left out where raw is true");
  if (pictured && (raw || !suffix.empty())) fields.refuse("images", "left out where raw is true, or suffix is given");
  read_context(served, fields, common.draft);
  common.draft.keep_tokens = !raw && !pictured;
  Chat chat = new_chat(served.config.defaults);
  read_think(fields, chat);
  if (!fields.ok()) return fields.error();
  if (prompt.empty() && suffix.empty() && !pictured) return loaded(served, OllamaShape::generate, common.keep_alive);
  if (raw || !suffix.empty()) return raw_generate(served, std::move(common), prompt, suffix);
  if (system && !system->empty()) {
    chat.messages.emplace_back().role = "system";
    chat.messages.back().content = *system;
  }
  chat.messages.emplace_back().role = "user";
  chat.messages.back().content = prompt;
  MediaIntake media(served.model.media.get(), served.config.defaults.media_folder);
  if (auto error = take_images(fields, media, chat.messages.back())) return *error;
  collect_media(chat);
  auto made = requests_from_chat(served, chat, std::move(common.draft), 1, common.reasoning);
  if (!made) return made.error();
  return told(served, OllamaShape::generate, std::move(made->requests), common, std::move(made->format));
}

}  // namespace chasqui
