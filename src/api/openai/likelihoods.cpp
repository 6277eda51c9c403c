#include "api/openai/likelihoods.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chasqui {
namespace {

// What OpenAI says for impossible.
constexpr float kImpossible = -9999.0f;

// Control tokens have no text in an answer, but a name.
std::string_view text_of(const Tokenizer& tokenizer, Token token) {
  const std::string_view piece = tokenizer.piece(token);
  return piece.empty() ? tokenizer.special_piece(token) : piece;
}

float finite(float logprob) { return std::isfinite(logprob) ? logprob : kImpossible; }

// See first_of_prompt().
bool is_first(const TokenChances& token) { return std::isnan(token.front().logprob); }

void write_bytes(JsonWriter& json, std::string_view text) {
  json.begin_array("bytes");
  for (const char byte : text) json.number(static_cast<unsigned>(static_cast<unsigned char>(byte)));
  json.end_array();
}

void write_token(JsonWriter& json, const Tokenizer& tokenizer, const TokenChance& chance, bool with_id, bool after) {
  const std::string_view text = text_of(tokenizer, chance.token);
  if (with_id) json.field("id", chance.token);
  json.field("token", text);
  write_bytes(json, text);
  if (after) {
    json.field("prob", std::exp(chance.logprob));
  } else {
    json.field("logprob", finite(chance.logprob));
  }
}

void write_list(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances, bool with_id,
                bool after) {
  json.begin_array();
  for (const TokenChances& token : chances) {
    json.begin_object();
    write_token(json, tokenizer, token.front(), with_id, after);
    json.begin_array(after ? "top_probs" : "top_logprobs");
    for (std::size_t i = 1; i < token.size(); ++i) {
      json.begin_object();
      write_token(json, tokenizer, token[i], with_id, after);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

// An echoed prompt is what the client wrote, which its tokens need not spell: a begin token stands for nothing in it,
// SentencePiece puts a blank before it, and it may name control tokens.
void pass(TextOffset& at, const Tokenizer& tokenizer, Token token) {
  const std::string_view piece = tokenizer.piece(token);
  if (at.echoed == 0) {
    at.characters += characters(piece);
    return;
  }
  for (const std::string_view spelt :
       {piece, piece.substr(piece.starts_with(' ') ? 1 : 0), tokenizer.special_piece(token)}) {
    if (spelt.empty() || !at.echo.starts_with(spelt)) continue;
    at.characters += characters(spelt);
    at.echo.remove_prefix(spelt.size());
    break;
  }
  if (--at.echoed == 0) at.characters += characters(at.echo);
}

}  // namespace

TokenChances first_of_prompt(Token token) { return {{token, std::numeric_limits<float>::quiet_NaN()}}; }

std::size_t told_tokens(const Tokenizer& tokenizer, std::span<const TokenChances> chances, const Event& finished,
                        std::size_t text_left) {
  if (finished.reason != FinishReason::stop || chances.empty()) return chances.size();
  if (finished.stop_string.empty()) return chances.size() - 1;
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < chances.size() && bytes < text_left; ++count) {
    bytes += tokenizer.piece(chances[count].front().token).size();
  }
  return count;
}

void write_chat_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances) {
  json.begin_object();
  json.key("content");
  write_list(json, tokenizer, chances, false, false);
  json.null("refusal");
  json.end_object();
}

void write_logprob_list(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances) {
  write_list(json, tokenizer, chances, false, false);
}

void write_completion_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances,
                               TextOffset& offset) {
  json.begin_object();
  json.begin_array("tokens");
  for (const TokenChances& token : chances) json.string(text_of(tokenizer, token.front().token));
  json.end_array();
  json.begin_array("token_logprobs");
  for (const TokenChances& token : chances) {
    is_first(token) ? json.null() : json.number(finite(token.front().logprob));
  }
  json.end_array();
  json.begin_array("top_logprobs");
  for (const TokenChances& token : chances) {
    if (is_first(token)) {
      json.null();
      continue;
    }
    json.begin_object();
    for (std::size_t i = 1; i < token.size(); ++i) {
      json.field(text_of(tokenizer, token[i].token), finite(token[i].logprob));
    }
    // The token itself is told in any case.
    if (std::find_if(token.begin() + 1, token.end(),
                     [&](const TokenChance& other) { return other.token == token.front().token; }) == token.end()) {
      json.field(text_of(tokenizer, token.front().token), finite(token.front().logprob));
    }
    json.end_object();
  }
  json.end_array();
  json.begin_array("text_offset");
  for (const TokenChances& token : chances) {
    json.number(offset.characters);
    pass(offset, tokenizer, token.front().token);
  }
  json.end_array();
  json.end_object();
}

void write_probabilities(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances,
                         bool after) {
  write_list(json, tokenizer, chances, true, after);
}

}  // namespace chasqui
