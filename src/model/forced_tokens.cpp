#include "model/forced_tokens.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace chasqui {
namespace {

// Where few bytes may follow, all of them are tried as what comes next, with what they force.
constexpr std::size_t kFewWays = 6;
constexpr std::size_t kWayBytes = 16;
// As GrammarMasks counts.
constexpr std::uint64_t kLookingMax = 50'000;
// Else these, where they may: characters of other kinds, which tokenizers treat alike.
constexpr std::string_view kKinds = "e7 \"-,.E}\n";

std::string_view whole_characters(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t bytes = utf8_character(text.substr(end));
    if (bytes == 0) break;
    end += bytes;
  }
  return text.substr(0, end);
}

class ForcedText {
 public:
  ForcedText(GrammarMasks& masks, GrammarMasks::Id state, Token last, const Tokenizer& tokenizer)
      : masks_(masks),
        tokenizer_(tokenizer),
        state_(state),
        last_(last),
        lead_(tokenizer.piece(last)),
        anchor_(anchor()) {}

  std::vector<Token> tokens() {
    const std::string_view text = before_control(whole_characters(masks_.forced_text(state_)));
    if (text.empty() || !is_valid_utf8(lead_)) return {};
    end_ = masks_.states().after_bytes(state_, text);
    std::vector<Token> found = behind_last(text);
    if (!found.empty() && may_be_longer(found.back())) found.pop_back();
    if (found.empty()) return found;
    for (const std::string& way : ways()) {
      const std::vector<Token> other = behind_last(std::string(text) + way);
      found.erase(std::ranges::mismatch(found, other).in1, found.end());
    }
    keep_allowed(found);
    return found;
  }

 private:
  // What the tokenizer makes of `text` behind the last token; nothing where the two do not part there. Counted from the
  // end, because some tokenizers put a space before everything.
  std::vector<Token> behind_last(std::string_view text) const {
    std::string all = anchor_;
    all.append(lead_).append(text);
    std::vector<Token> tokens = tokenizer_.tokenize(all, AddSpecial::no, ParseSpecial::no);
    auto first = tokens.end();
    for (std::string_view left = text; !left.empty();) {
      if (first == tokens.begin()) return {};
      const std::string_view piece = tokenizer_.piece(*--first);
      if (piece.empty() || !left.ends_with(piece)) return {};
      left.remove_suffix(piece.size());
    }
    if (!lead_.empty() && (first == tokens.begin() || *(first - 1) != last_)) return {};
    tokens.erase(tokens.begin(), first);
    return tokens;
  }

  // A marker of the model's, such as [ARGS] between a tool's name and its arguments, is one token that the model draws,
  // and other tokens where its text is spelled.
  std::string_view before_control(std::string_view text) const {
    const std::vector<Token> tokens = tokenizer_.tokenize(text, AddSpecial::no, ParseSpecial::yes);
    std::size_t end = text.size();
    std::size_t left = text.size();
    for (auto token = tokens.rbegin(); token != tokens.rend() && left > 0; ++token) {
      left -= std::min(left, tokenizer_.special_piece(*token).size());
      if (tokenizer_.piece(*token).empty()) end = left;
    }
    return text.substr(0, end);
  }

  // What takes the space that some tokenizers put before a text, and does not grow together with the last token.
  std::string anchor() const {
    const std::vector<Token> one = tokenizer_.tokenize("x", AddSpecial::no, ParseSpecial::no);
    if (one.empty() || !tokenizer_.piece(one.front()).starts_with(' ')) return {};
    const auto first = static_cast<unsigned char>(lead_.empty() ? ' ' : lead_.front());
    return std::isalnum(first) != 0 || first >= 0x80 ? "(" : "x";
  }

  // Other tokens begin with it that may come in its place, or more of them would have to be tried than is worth it.
  bool may_be_longer(Token token) const {
    const TokenTrie& trie = *masks_.program()->tokens;
    const std::string_view piece = trie.piece(token);
    const std::uint64_t most = masks_.work() + kLookingMax;
    for (const TokenTrie::Tree* tree : {&trie.plain(), &trie.others()}) {
      const auto piece_of = [&](Token other) { return trie.piece(other); };
      auto other = std::ranges::upper_bound(tree->tokens, piece, {}, piece_of);
      for (; other != tree->tokens.end() && piece_of(*other).starts_with(piece); ++other) {
        const std::string_view rest = piece_of(*other).substr(piece.size());
        if (masks_.work() > most || masks_.states().after_bytes(end_, rest) != GrammarStates::kDead) return true;
      }
    }
    return false;
  }

  // What may follow the text.
  std::vector<std::string> ways() const {
    GrammarStates& states = masks_.states();
    std::string bytes;
    for (int byte = 0; byte < 0x80; ++byte) {
      if (states.next(end_, static_cast<std::uint8_t>(byte)) != GrammarStates::kDead) bytes += static_cast<char>(byte);
    }
    if (bytes.size() > kFewWays) std::erase_if(bytes, [](char byte) { return kKinds.find(byte) == kKinds.npos; });
    std::vector<std::string> out;
    for (const char byte : bytes) {
      const GrammarMasks::Id next = states.next(end_, static_cast<std::uint8_t>(byte));
      const std::string_view more = std::string_view(masks_.forced_text(next)).substr(0, kWayBytes);
      out.push_back(byte + std::string(whole_characters(more)));
    }
    return out;
  }

  void keep_allowed(std::vector<Token>& tokens) const {
    GrammarMasks::Id at = state_;
    for (auto token = tokens.begin(); token != tokens.end(); ++token) {
      at = masks_.program()->tokens->is_end(*token) ? GrammarStates::kDead : masks_.after(at, *token);
      if (at != GrammarStates::kDead) continue;
      tokens.erase(token, tokens.end());
      return;
    }
  }

  GrammarMasks& masks_;
  const Tokenizer& tokenizer_;
  const GrammarMasks::Id state_;
  const Token last_;
  const std::string_view lead_;  // empty: a control token, behind which text begins anew
  const std::string anchor_;
  GrammarMasks::Id end_ = GrammarStates::kDead;  // behind the text
};

}  // namespace

std::span<const Token> forced_tokens(GrammarMasks& masks, GrammarMasks::Id state, Token last,
                                     const Tokenizer& tokenizer) {
  if (masks.forced_text(state).empty()) return {};
  if (const std::vector<Token>* known = masks.forced_tokens(state, last)) return *known;
  return masks.keep_forced_tokens(state, last, ForcedText(masks, state, last, tokenizer).tokens());
}

}  // namespace chasqui
