#include "model/sim_words.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/mixed_bits.h"

namespace chasqui {
namespace {

constexpr int kHangSecondsMax = 3600;
constexpr std::size_t kNoEndAfterControl = 16;  // tokens; covers "assistant\n" and a few words

bool begins_with(std::span<const Token> tokens, std::span<const Token> beginning) {
  return tokens.size() >= beginning.size() && std::ranges::equal(tokens.first(beginning.size()), beginning);
}

// Index of the last `wanted` in tokens[0 … end), or tokens.size() when there is none.
std::size_t find_last(std::span<const Token> tokens, std::size_t end, Token wanted) {
  constexpr std::size_t kAtOnce = 16;  // in vector instructions: this is asked of a whole history for each token
  for (; end >= kAtOnce; end -= kAtOnce) {
    bool there = false;
    for (std::size_t i = end - kAtOnce; i < end; ++i) there |= tokens[i] == wanted;
    if (there) break;
  }
  while (end > 0) {
    if (tokens[--end] == wanted) return end;
  }
  return tokens.size();
}

}  // namespace

SimWords::SimWords(std::shared_ptr<const SimTokenizer> tokenizer, std::int32_t answer_tokens)
    : tokenizer_(std::move(tokenizer)),
      answer_tokens_(answer_tokens),
      assistant_(tokenizer_->tokenize("assistant\n", AddSpecial::no, ParseSpecial::no)),
      user_says_(tokenizer_->tokenize("user\nsay:", AddSpecial::no, ParseSpecial::no)),
      user_hangs_(tokenizer_->tokenize("user\nhang:", AddSpecial::no, ParseSpecial::no)) {
  CHECK(answer_tokens >= 1);
}

// Words, now and then a full stop, and an é in two tokens, so that half characters occur.
Token SimWords::word(const SimHistory& history) const {
  if (history.tokens.back() == 0xC3) return 0xA9;
  const std::uint64_t hash = history.hash;
  if (hash % 13 == 0) return '.';
  if (hash % 61 == 0) return 0xC3;
  const auto words = static_cast<std::uint64_t>(tokenizer_->vocabulary() - SimTokenizer::kFirstWord);
  return SimTokenizer::kFirstWord + static_cast<Token>((hash >> 8) % words);
}

bool SimWords::ends(const SimHistory& history) const {
  if (history.tokens.back() == 0xC3) return false;
  const std::size_t near = std::min(history.tokens.size(), kNoEndAfterControl);
  const auto control = [](Token t) { return t >= SimTokenizer::kImStart && t < SimTokenizer::kFirstWord; };
  if (std::ranges::any_of(history.tokens.last(near), control)) return false;
  return mixed_bits(history.hash) % static_cast<std::uint64_t>(answer_tokens_) == 0;
}

// Nothing when the history does not end in an answer to such a message.
std::optional<SimWords::Turn> SimWords::last_turn(std::span<const Token> all, std::span<const Token> begin) const {
  const std::size_t answer = find_last(all, all.size(), SimTokenizer::kImStart);
  if (answer == all.size() || !begins_with(all.subspan(answer + 1), assistant_)) return std::nullopt;
  const std::size_t end = find_last(all, answer, SimTokenizer::kImEnd);
  if (end == all.size()) return std::nullopt;
  const std::size_t turn = find_last(all, end, SimTokenizer::kImStart);
  if (turn == all.size() || !begins_with(all.subspan(turn + 1), begin)) return std::nullopt;

  const std::size_t text_begin = turn + 1 + begin.size();
  std::string text = detokenize(*tokenizer_, all.subspan(text_begin, end - text_begin));
  if (text.starts_with(' ')) text.erase(0, 1);
  return Turn{std::move(text), all.size() - (answer + 1 + assistant_.size())};
}

// The next token of the answer to "say: TEXT"; -1 when there is none.
Token SimWords::echo(std::span<const Token> all) const {
  const auto turn = last_turn(all, user_says_);
  if (!turn) return -1;
  const std::vector<Token> reply = tokenizer_->tokenize(turn->text, AddSpecial::no, ParseSpecial::no);
  return turn->said < reply.size() ? reply[turn->said] : SimTokenizer::kImEnd;
}

SimVoice::Next SimWords::next(const SimHistory& history) const {
  Next next;
  next.runner_up = word(history);
  next.chosen = echo(history.tokens);
  if (next.chosen < 0) next.chosen = ends(history) ? SimTokenizer::kImEnd : next.runner_up;
  return next;
}

Duration SimWords::hang(const SimHistory& history) const {
  const std::size_t size = history.tokens.size();
  if (size < assistant_.size() || !begins_with(history.tokens.last(assistant_.size()), assistant_)) return {};
  const auto turn = last_turn(history.tokens, user_hangs_);
  if (!turn || turn->said > 0) return {};
  int seconds_wanted = 0;
  std::from_chars(turn->text.data(), turn->text.data() + turn->text.size(), seconds_wanted);
  return seconds(std::clamp(seconds_wanted, 0, kHangSecondsMax));
}

}  // namespace chasqui
