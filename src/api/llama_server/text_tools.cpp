#include "api/llama_server/text_tools.h"

#include "api/body/fields.h"
#include "api/body/media_links.h"
#include "api/body/prompt.h"
#include "api/body/prompt_forms.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Longer texts than any context holds are no use to a client, and a thread of the pool to us.
constexpr std::size_t kContentBytesMax = kSizeLimit<"content_bytes">;

// A piece that is not UTF-8 by itself is shown as its bytes, as llama-server does.
void write_piece(JsonWriter& json, std::string_view piece) {
  if (is_valid_utf8(piece)) return json.string(piece);
  json.begin_array();
  for (const char byte : piece) json.number(static_cast<unsigned>(static_cast<unsigned char>(byte)));
  json.end_array();
}

}  // namespace

Result<std::string> tokenize_answer(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const boost::json::value* content = fields.any("content");
  const boost::json::array one =
      content != nullptr && content->is_string() ? boost::json::array{*content} : boost::json::array();
  const boost::json::array* items = content != nullptr && content->is_array() ? &content->get_array() : &one;
  if (content == nullptr || (one.empty() && !content->is_array()) || text_bytes(*items) > kContentBytesMax) {
    fields.refuse("content", "a string of at most " + std::to_string(kContentBytesMax) +
                                 " bytes, or an array of strings and token ids");
  }
  const bool add = fields.boolean("add_special").value_or(false);
  const bool parse = fields.boolean("parse_special").value_or(true);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  if (!fields.ok()) return fields.error();

  const Tokenizer& tokenizer = *served.model.tokenizer;
  const auto tokens = tokenize_mixed(served, *items, "content", add ? AddSpecial::yes : AddSpecial::no,
                                     parse ? ParseSpecial::yes : ParseSpecial::no);
  if (!tokens) return tokens.error();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("tokens");
  for (const Token token : *tokens) {
    if (!with_pieces) {
      json.number(token);
      continue;
    }
    json.begin_object();
    json.field("id", token);
    json.key("piece");
    write_piece(json, tokenizer.special_piece(token));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return out;
}

Result<std::string> detokenize_answer(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const boost::json::array* array = fields.array("tokens");
  if (array == nullptr) fields.refuse("tokens", "an array of token ids");
  if (!fields.ok()) return fields.error();
  const auto tokens = read_tokens(served, *array, "tokens");
  if (!tokens) return tokens.error();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("content", detokenize(*served.model.tokenizer, *tokens));
  json.end_object();
  return out;
}

Result<std::string> apply_template_answer(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const Chat chat = read_chat(fields, served.config.defaults, served.model.media.get());
  if (!fields.ok()) return fields.error();
  auto prompt = served.model.chat_template->render(chat);
  if (!prompt) return prompt.error();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("prompt", *prompt);
  json.end_object();
  return out;
}

Result<std::string> count_chat_input(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const Chat chat = read_chat(fields, served.config.defaults, served.model.media.get());
  if (!fields.ok()) return fields.error();
  auto prompt = prompt_of_chat(served, chat);
  if (!prompt) return prompt.error();
  return "{\"object\":\"response.input_tokens\",\"input_tokens\":" + std::to_string(prompt->tokens.size()) + "}";
}

Handled handle_text_tool(Call call, TextTool tool) {
  const Result<Permit> permit = enter_aside(call);
  if (!permit) co_return permit.error();
  if (may_link_media(call.frontend, call.served)) {
    Result<void> brought = co_await bring_linked_media(call);
    if (!brought) co_return brought.error();
  }
  // Not dropped when its client has sent its end: it may still read the answer.
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  auto work = [&served = call.served, tool, body = std::move(call.body)] { return tool(served, body); };
  Result<std::string> answer = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!answer) co_return answer.error();
  co_await respond_json(call.exchange, std::move(*answer));
  co_return Result<void>();
}

}  // namespace chasqui
