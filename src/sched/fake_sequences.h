// Sequences that decode, for tests of what is planned for them: each has a slot, and has said one token. One thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/fake_requests.h"
#include "core/sequence.h"

namespace chasqui {

class FakeSequences {
 public:
  // `newest`: what it has just said.
  Sequence& add(RequestDraft draft, Token newest = 7) {
    draft.sampling.seed = 1;
    return add(test_request(sequences_.size() + 1, std::move(draft)), newest);
  }
  Sequence& add(RequestPtr request, Token newest = 7) {
    const auto rows = static_cast<TokenCount>(request->prompt.size());
    auto sequence = std::make_unique<Sequence>(std::move(request));
    sequence->start(SlotId{static_cast<std::int32_t>(sequences_.size())}, TimePoint{});
    sequence->computed_rows(rows, TimePoint{});
    sequence->add_token(newest, TimePoint{});
    decoding_.push_back(sequence.get());
    return *sequences_.emplace_back(std::move(sequence));
  }
  Sequence& add(std::vector<Token> prompt, Token newest = 7) {
    RequestDraft draft;
    draft.prompt = std::move(prompt);
    draft.max_tokens = 50;
    return add(std::move(draft), newest);
  }
  // A step has brought these tokens, and computed all but the last one.
  static void say(Sequence& sequence, const std::vector<Token>& tokens) {
    for (const Token token : tokens) {
      sequence.computed_rows(1, TimePoint{});
      sequence.add_token(token, TimePoint{});
    }
  }
  const std::vector<const Sequence*>& decoding() const { return decoding_; }  // ascending slots

 private:
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<const Sequence*> decoding_;
};

}  // namespace chasqui
