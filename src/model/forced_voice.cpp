#include "model/forced_voice.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace chasqui {

std::string forced_text(std::string_view prompt) {
  constexpr std::string_view kBegin = "say:";
  std::string out;
  const std::size_t begin = prompt.rfind(kBegin);
  if (begin == std::string_view::npos) return out;
  prompt.remove_prefix(begin + kBegin.size());
  for (; prompt.size() >= 2; prompt.remove_prefix(2)) {
    unsigned char byte = 0;
    const auto [end, failed] = std::from_chars(prompt.data(), prompt.data() + 2, byte, 16);
    if (failed != std::errc() || end != prompt.data() + 2) break;
    out += static_cast<char>(byte);
  }
  return out;
}

ForcedVoice::ForcedVoice(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), filler_(tokenizer_->tokenize("a", AddSpecial::no, ParseSpecial::no).front()) {
  CHECK(!tokenizer_->end_of_generation_tokens().empty());
}

SimVoice::Next ForcedVoice::next(const SimHistory& history) const {
  const std::string text = forced_text(detokenize(*tokenizer_, history.tokens.first(history.prompt)));
  const std::vector<Token> tokens = tokenizer_->tokenize(text, AddSpecial::no, ParseSpecial::yes);
  const std::size_t said = history.tokens.size() - history.prompt;
  Next next;
  next.chosen = said < tokens.size() ? tokens[said] : tokenizer_->end_of_generation_tokens().front();
  next.runner_up = filler_;
  return next;
}

Duration ForcedVoice::hang(const SimHistory& history) const {
  constexpr std::string_view kHang = "hang: ";
  constexpr int kSecondsMax = 3600;
  if (history.tokens.size() > history.prompt) return {};
  const std::string prompt = detokenize(*tokenizer_, history.tokens);
  const std::size_t begin = prompt.rfind(kHang);
  if (begin == std::string::npos) return {};
  int wanted = 0;
  std::from_chars(prompt.data() + begin + kHang.size(), prompt.data() + prompt.size(), wanted);
  return seconds(std::clamp(wanted, 0, kSecondsMax));
}

}  // namespace chasqui
