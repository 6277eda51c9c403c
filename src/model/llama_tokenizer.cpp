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

// Tokens that libllama looks for in the text before it tokenizes what lies between them. One that swallows the spaces
// before it (lstrip) is no place to cut: the spaces would stay.
void add_to_cutters(const llama_vocab* vocab, Token token, SpecialCutter& parsed, SpecialCutter& literal) {
  const llama_token_attr attributes = llama_vocab_get_attr(vocab, token);
  const bool user_defined = (attributes & LLAMA_TOKEN_ATTR_USER_DEFINED) != 0;
  const bool control = (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
  if (!user_defined && !control) return;
  const bool cuts = (attributes & LLAMA_TOKEN_ATTR_LSTRIP) == 0;
  const char* text = llama_vocab_get_text(vocab, token);
  parsed.add(text, cuts);
  if (user_defined) literal.add(text, cuts);
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
  const std::string& type = weights_->info().vocabulary_type;
  if (type == "BPE" || type == "SPM") {
    for (const Piece& piece : pieces_) piece_bytes_max_ = std::max<std::size_t>(piece_bytes_max_, piece.size);
  }
  if (type == "BPE") {  // the others have no regular expressions, and some begin a piece with a space
    parsed_cutter_.cut_runs();
    literal_cutter_.cut_runs();
  }
  for (Token token = 0; token < count; ++token) add_to_cutters(vocab, token, parsed_cutter_, literal_cutter_);
}

std::vector<Token> LlamaTokenizer::tokenize(std::string_view text, AddSpecial add, ParseSpecial parse) const {
  std::vector<Token> tokens;
  if (text.size() > kTextBytesMax) return tokens;
  const SpecialCutter& cutter = parse == ParseSpecial::yes ? parsed_cutter_ : literal_cutter_;
  const std::size_t first = cutter.next_cut(text);
  if (first == text.size()) {
    append_tokens(text, add, parse, tokens);
    return tokens;
  }
  // In pieces, what belongs at the beginning and at the end is for us to add.
  const llama_vocab* vocab = weights_->vocab();
  if (add == AddSpecial::yes && llama_vocab_get_add_bos(vocab)) tokens.push_back(llama_vocab_bos(vocab));
  bool ok = true;
  for (std::size_t cut = first; ok && !text.empty(); cut = cutter.next_cut(text)) {
    ok = append_tokens(text.substr(0, cut), AddSpecial::no, parse, tokens);
    text.remove_prefix(cut);
  }
  if (!ok) tokens.clear();
  if (ok && add == AddSpecial::yes && llama_vocab_get_add_eos(vocab)) tokens.push_back(llama_vocab_eos(vocab));
  return tokens;
}

bool LlamaTokenizer::append_tokens(std::string_view text, AddSpecial add, ParseSpecial parse,
                                   std::vector<Token>& out) const {
  const std::size_t before = out.size();
  // No token is shorter than a byte, but for the ones that are added.
  out.resize(before + text.size() + 8);
  const auto run = [&] {
    return llama_tokenize(weights_->vocab(), text.data(), static_cast<std::int32_t>(text.size()), out.data() + before,
                          static_cast<std::int32_t>(out.size() - before), add == AddSpecial::yes,
                          parse == ParseSpecial::yes);
  };
  try {
    std::int32_t count = run();
    if (count < 0 && count > std::numeric_limits<std::int32_t>::min()) {
      out.resize(before + static_cast<std::size_t>(-count));
      count = run();
    }
    out.resize(before + static_cast<std::size_t>(std::max(count, 0)));
    return true;
  } catch (const std::exception& e) {
    log_error("tokenization failed", {{"reason", e.what()}, {"bytes", text.size()}});
    out.resize(before);
    return false;
  }
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
