// What FakeModel says: a hash of all tokens before, as a number, and where its answers end. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

// When a request's answer ends by itself; 0: never.
struct FakeScript {
  TokenCount end_after = 0;   // the n-th token ends the generation
  TokenCount stop_after = 0;  // the n-th token completes the stop string "STOP"
  bool forces = false;        // some tokens force some of those behind them
  int waits = 0;              // steps that each token is put off, if nothing forces it
  bool repeats = false;       // most tokens depend on the two before only, so that much is said again
};

inline std::uint64_t fake_hash(std::uint64_t hash, Token token) {
  hash = (hash ^ static_cast<std::uint64_t>(token)) * 0x100000001B3ull;
  return hash ^ (hash >> 29);
}

inline Token fake_next(std::span<const Token> history, bool repeats = false) {
  repeats = repeats && history.size() > 2 && history.size() % 23 != 0;
  if (repeats) history = history.last(2);
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const Token token : history) hash = fake_hash(hash, token);
  return static_cast<Token>(hash % (repeats ? 8 : 1000));
}

// How many tokens a grammar forces behind it.
inline TokenCount fake_forced(Token sampled, const FakeScript& script) {
  return script.forces && sampled % 4 == 0 ? sampled / 4 % 7 : 0;
}

inline std::string fake_text(Token token) { return std::to_string(token) + ' '; }

// What the model says of the newest token of `answer`.
inline Sample fake_sample(RequestId request, std::span<const Token> answer, const FakeScript& script) {
  const auto count = static_cast<TokenCount>(answer.size());
  Sample sample;
  sample.request = request;
  sample.token = answer.back();
  sample.end_of_generation = count == script.end_after;
  sample.stopped = !sample.end_of_generation && count == script.stop_after;
  if (sample.stopped) sample.stop_string = "STOP";
  if (!sample.end_of_generation && !sample.stopped) sample.text = fake_text(answer.back());
  return sample;
}

// Rows of a slot.
inline std::int32_t width_of(const BatchPart& part) { return part.rows + part.draft_tokens + part.padding; }

// libllama takes adjacent slots together, and equally many rows of each. Prompts are not read otherwise; decoding
// sequences cannot always be adjacent.
inline bool one_pass(const Batch& batch) {
  for (std::size_t i = 1; i < batch.parts.size(); ++i) {
    const BatchPart& before = batch.parts[i - 1];
    const BatchPart& part = batch.parts[i];
    if (width_of(part) != width_of(before)) return false;
    if (batch.kind == Batch::Kind::prefill && part.slot.value != before.slot.value + 1) return false;
  }
  return true;
}

// The text of `tokens` tokens when the request is the only one.
inline std::string fake_answer(const Request& request, TokenCount tokens, const FakeScript& script) {
  std::vector<Token> history = request.prompt;
  std::string text;
  TokenCount forced = 0;
  for (TokenCount n = 1; n <= tokens; ++n) {
    const bool sampled = forced == 0;
    if (!sampled) --forced;
    while (sampled && n > 1 && request.shift_at > 0 && std::ssize(history) >= request.shift_at) {
      const auto behind = static_cast<TokenCount>(history.size()) - 1 - request.keep;
      const TokenCount gone = std::clamp(request.discard > 0 ? request.discard : behind / 2, 1, behind - 1);
      history.erase(history.begin() + request.keep, history.begin() + request.keep + gone);
    }
    history.push_back(fake_next(history, script.repeats));
    if (sampled) forced = fake_forced(history.back(), script);
    if (n != script.end_after && n != script.stop_after) text += fake_text(history.back());
  }
  return text;
}

}  // namespace chasqui
