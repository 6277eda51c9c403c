#include "model/llama_tokenizer.h"

#include <exception>
#include <limits>

#include <llama.h>

#include "base/log.h"

namespace chasqui {
namespace {

constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;  // libllama counts in 32 bits

// The bytes of a token; `special` renders control tokens too.
std::string_view render(const llama_vocab* vocab, Token token, bool special, std::string& buffer) {
  buffer.resize(std::max<std::size_t>(buffer.size(), 256));
  int length = llama_token_to_piece(vocab, token, buffer.data(), static_cast<int>(buffer.size()), 0, special);
  if (length < 0) {
    buffer.resize(static_cast<std::size_t>(-length));
    length = llama_token_to_piece(vocab, token, buffer.data(), static_cast<int>(buffer.size()), 0, special);
  }
  return std::string_view(buffer).substr(0, static_cast<std::size_t>(std::max(length, 0)));
}

}  // namespace

LlamaTokenizer::LlamaTokenizer(WeightsPtr weights) : weights_(std::move(weights)) {
  const llama_vocab* vocab = weights_->vocab();
  const Token count = llama_vocab_n_tokens(vocab);
  pieces_.resize(static_cast<std::size_t>(count));
  std::string buffer;
  for (Token token = 0; token < count; ++token) {
    Piece& piece = pieces_[static_cast<std::size_t>(token)];
    piece.hidden = render(vocab, token, false, buffer).empty();
    const std::string_view text = render(vocab, token, true, buffer);
    piece.begin = static_cast<std::uint32_t>(text_.size());
    piece.size = static_cast<std::uint32_t>(text.size());
    text_ += text;
    piece.ends = llama_vocab_is_eog(vocab, token);
    if (piece.ends) end_of_generation_.push_back(token);
  }
  text_.shrink_to_fit();
}

std::vector<Token> LlamaTokenizer::tokenize(std::string_view text, AddSpecial add, ParseSpecial parse) const {
  if (text.size() > kTextBytesMax) return {};
  // No token is shorter than a byte, but for the ones that are added.
  std::vector<Token> tokens(text.size() + 8);
  const auto run = [&] {
    return llama_tokenize(weights_->vocab(), text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                          static_cast<std::int32_t>(tokens.size()), add == AddSpecial::yes, parse == ParseSpecial::yes);
  };
  try {
    std::int32_t count = run();
    if (count < 0 && count > std::numeric_limits<std::int32_t>::min()) {
      tokens.resize(static_cast<std::size_t>(-count));
      count = run();
    }
    tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  } catch (const std::exception& e) {
    log_error("tokenization failed", {{"reason", e.what()}, {"bytes", text.size()}});
    tokens.clear();
  }
  tokens.shrink_to_fit();
  return tokens;
}

std::string_view LlamaTokenizer::piece(Token token) const {
  const Piece& piece = pieces_[static_cast<std::size_t>(token)];
  return piece.hidden ? std::string_view() : std::string_view(text_).substr(piece.begin, piece.size);
}

std::string_view LlamaTokenizer::special_piece(Token token) const {
  const Piece& piece = pieces_[static_cast<std::size_t>(token)];
  return std::string_view(text_).substr(piece.begin, piece.size);
}

}  // namespace chasqui
