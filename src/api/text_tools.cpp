#include "api/text_tools.h"

#include "api/answer.h"
#include "api/completions.h"
#include "api/fields.h"
#include "api/prompt.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "base/utf8.h"

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

Result<std::string> tokenize_answer(const Service& service, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const auto content = fields.string("content");
  if (!content || content->size() > kContentBytesMax) {
    fields.refuse("content", "a string of at most " + std::to_string(kContentBytesMax) + " bytes");
  }
  const bool add = fields.boolean("add_special").value_or(false);
  const bool parse = fields.boolean("parse_special").value_or(true);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  if (!fields.ok()) return fields.error();

  const Tokenizer& tokenizer = *service.model.tokenizer;
  const std::vector<Token> tokens = tokenizer.tokenize(*content, add ? AddSpecial::yes : AddSpecial::no,
                                                       parse ? ParseSpecial::yes : ParseSpecial::no);
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("tokens");
  json.begin_array();
  for (const Token token : tokens) {
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

Result<std::string> detokenize_answer(const Service& service, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const boost::json::array* array = fields.array("tokens");
  if (array == nullptr) fields.refuse("tokens", "an array of token ids");
  if (!fields.ok()) return fields.error();
  const auto tokens = read_tokens(service, *array, "tokens");
  if (!tokens) return tokens.error();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("content", detokenize(*service.model.tokenizer, *tokens));
  json.end_object();
  return out;
}

Result<std::string> apply_template_answer(const Service& service, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const Chat chat = read_chat(fields);
  if (!fields.ok()) return fields.error();
  auto prompt = service.model.chat_template->render(chat);
  if (!prompt) return prompt.error();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("prompt", *prompt);
  json.end_object();
  return out;
}

Result<std::string> count_chat_input(const Service& service, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const Chat chat = read_chat(fields);
  if (!fields.ok()) return fields.error();
  auto tokens = prompt_of_chat(service, chat);
  if (!tokens) return tokens.error();
  return "{\"input_tokens\":" + std::to_string(tokens->size()) + "}";
}

net::Awaitable<void> handle_text_tool(Service& service, net::HttpExchange& exchange, TextTool tool) {
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  Result<Permit> permit = Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  if (caller) permit = enter_aside(service, *caller);
  if (!permit) {
    Error error = permit.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  // Not dropped when its client has sent its end: it may still read the answer.
  net::OffloadTerms terms = reading_terms(*caller, exchange.request().body.size());
  auto work = [&service, tool, body = exchange.take_body()] { return tool(service, body); };
  Result<std::string> answer = co_await service.offload.run(std::move(work), std::move(terms));
  if (answer) {
    co_await respond_json(exchange, std::move(*answer));
  } else {
    Error error = answer.error();
    co_await respond_error(exchange, std::move(error));
  }
}

}  // namespace chasqui
