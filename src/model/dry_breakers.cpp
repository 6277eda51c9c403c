#include "model/dry_breakers.h"

#include <algorithm>

#include <llama.h>

namespace chasqui {
namespace {

constexpr std::size_t kTailMax = 20;  // tokens, as in libllama

}  // namespace

TokenTexts::TokenTexts(const llama_vocab* vocab) {
  std::string buffer(256, '\0');
  for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    const auto render = [&] {
      return llama_detokenize(vocab, &token, 1, buffer.data(), static_cast<std::int32_t>(buffer.size()), false, true);
    };
    std::int32_t length = render();
    if (length < 0) {
      buffer.resize(static_cast<std::size_t>(-length));
      length = render();
    }
    text_.append(buffer, 0, static_cast<std::size_t>(std::max(length, 0)));
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
}

DryBreakers::DryBreakers(std::vector<std::string> texts, const TokenTexts& tokens, const Tokenizer& tokenizer)
    : texts_(std::move(texts)), heads_(static_cast<std::size_t>(tokens.count())) {
  for (const std::string& text : texts_) add_text(text, tokens, tokenizer);
  for (Place& place : places_) {
    std::ranges::sort(place.heads);
    place.heads.erase(std::unique(place.heads.begin(), place.heads.end()), place.heads.end());
  }
}

void DryBreakers::add_text(const std::string& text, const TokenTexts& tokens, const Tokenizer& tokenizer) {
  std::vector<Node> nodes(text.size(), kNone);  // of what follows so many bytes
  const auto add = [&](Node node, Token token) {
    places_[node].heads.push_back(token);
    heads_[static_cast<std::size_t>(token)] = true;
  };
  for (Token token = 0; token < tokens.count(); ++token) {
    const std::string_view word = tokens[token];
    if (word.find(text) != std::string_view::npos) {
      add(kRoot, token);
      continue;
    }
    for (std::size_t at = word.find(text.front()); at != std::string_view::npos; at = word.find(text.front(), at + 1)) {
      const std::string_view end = word.substr(at);
      if (!text.starts_with(end)) continue;
      Node& node = nodes[end.size()];
      if (node == kNone) {
        std::vector<Token> tail = tokenizer.tokenize(text.substr(end.size()), AddSpecial::no, ParseSpecial::no);
        tail.resize(std::min(tail.size(), kTailMax));
        node = node_of(tail);
      }
      add(node, token);
    }
  }
}

DryBreakers::Node DryBreakers::node_of(std::span<const Token> tail) {
  Node node = kRoot;
  for (const Token token : tail) {
    const auto [found, fresh] = places_[node].next.emplace(token, static_cast<Node>(places_.size()));
    node = found->second;
    if (fresh) places_.emplace_back();
  }
  return node;
}

DryBreakers::Node DryBreakers::after(Node node, Token token) const {
  const auto found = places_[node].next.find(token);
  return found != places_[node].next.end() ? found->second : kNone;
}

bool DryBreakers::complete(Node node, Token head) const {
  return std::ranges::binary_search(places_[node].heads, head);
}

}  // namespace chasqui
