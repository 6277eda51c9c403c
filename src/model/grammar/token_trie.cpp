#include "model/grammar/token_trie.h"

#include <algorithm>
#include <limits>

#include "model/grammar/utf8_ranges.h"

namespace chasqui {
namespace {

// How many characters of plain text; 0: it is none, or too long.
std::size_t plain_characters(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t bytes = read_utf8(text, code);
    if (bytes == 0 || code < 0x20 || code == 0x7F || code == '"' || code == '\\') return 0;
    text.remove_prefix(bytes);
    if (++count > TokenTrie::kPlainMost) return 0;
  }
  return count;
}

}  // namespace

TokenTrie::TokenTrie(std::span<const std::string_view> pieces, std::span<const Token> end_of_generation)
    : usable_(pieces.size()), ends_(end_of_generation.begin(), end_of_generation.end()) {
  offsets_.reserve(pieces.size() + 1);
  for (const std::string_view piece : pieces) {
    offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
    text_ += piece;
  }
  offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
  for (TokenBits& bits : plain_up_to_) bits.resize((pieces.size() + 63) / 64);

  for (Token token = 0; token < vocabulary(); ++token) {
    const std::string_view text = piece(token);
    const bool usable = !text.empty() && text.size() <= std::numeric_limits<std::uint16_t>::max() &&
                        text.find('\0') == text.npos && !is_end(token);
    usable_[static_cast<std::size_t>(token)] = usable;
    if (!usable) continue;
    const std::size_t characters = plain_characters(text);
    (characters > 0 ? plain_ : others_).tokens.push_back(token);
    for (std::size_t i = characters; i > 0 && i <= kPlainMost; ++i) add_token(plain_up_to_[i - 1], token);
  }
  for (Tree* tree : {&plain_, &others_}) {
    const auto earlier = [this](Token a, Token b) {
      const int order = piece(a).compare(piece(b));
      return order != 0 ? order < 0 : a < b;
    };
    std::ranges::sort(tree->tokens, earlier);
    std::vector<std::size_t> open;  // nodes on the way to the last token, by depth
    std::string_view last;
    const auto close_to = [&](std::size_t depth) {
      for (; open.size() > depth; open.pop_back()) {
        tree->nodes[open.back()].skip = static_cast<std::uint32_t>(tree->nodes.size());
      }
    };
    for (std::size_t i = 0; i < tree->tokens.size(); ++i) {
      const std::string_view text = piece(tree->tokens[i]);
      const auto [differs, _] = std::ranges::mismatch(last, text);
      const auto same = static_cast<std::size_t>(differs - last.begin());
      close_to(same);
      for (std::size_t at = same; at < text.size(); ++at) {
        open.push_back(tree->nodes.size());
        // What ends above has been listed before what ends here.
        tree->nodes.push_back({static_cast<std::uint32_t>(i), 0, static_cast<std::uint16_t>(at + 1),
                               static_cast<std::uint8_t>(text[at])});
      }
      tree->depth = std::max(tree->depth, static_cast<std::uint16_t>(text.size()));
      last = text;
    }
    close_to(0);
    tree->nodes.push_back({static_cast<std::uint32_t>(tree->tokens.size()), 0, 0, 0});
    tree->nodes.shrink_to_fit();
  }
}

std::string_view TokenTrie::piece(Token token) const {
  const std::uint32_t begin = offsets_[static_cast<std::size_t>(token)];
  return std::string_view(text_).substr(begin, offsets_[static_cast<std::size_t>(token) + 1] - begin);
}

bool TokenTrie::is_end(Token token) const { return std::ranges::find(ends_, token) != ends_.end(); }

std::size_t TokenTrie::bytes() const {
  std::size_t sum = text_.size() + offsets_.size() * sizeof(std::uint32_t) + usable_.size() / 8;
  for (const Tree* tree : {&plain_, &others_}) {
    sum += tree->nodes.size() * sizeof(Node) + tree->tokens.size() * sizeof(Token);
  }
  for (const TokenBits& bits : plain_up_to_) sum += bits.size() * sizeof(std::uint64_t);
  return sum;
}

}  // namespace chasqui
