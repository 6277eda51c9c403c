// Prompts with units for tests: what a MediaReader would make of them, without pixels. Any thread.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "core/fake_requests.h"
#include "core/media.h"

namespace chasqui {

class FakePrompt {
 public:
  FakePrompt& text(TokenCount tokens, std::uint64_t salt = 0) {
    const std::vector<Token> more = test_prompt(tokens, salt);
    tokens_.insert(tokens_.end(), more.begin(), more.end());
    return *this;
  }
  // The same `content` is the same picture.
  FakePrompt& picture(TokenCount positions, std::uint64_t content = 1, bool causal = true) {
    MediaUnit unit;
    std::memcpy(unit.identity.data(), &content, sizeof content);
    unit.begin = static_cast<TokenCount>(tokens_.size());
    unit.positions = positions;
    unit.causal = causal;
    for (TokenCount place = 0; place < positions; ++place) tokens_.push_back(media_token(unit.identity, place));
    units_.push_back(unit);
    return *this;
  }
  RequestDraft draft(std::int64_t max_tokens = 3) const {
    RequestDraft draft;
    draft.prompt = tokens_;
    if (!units_.empty()) draft.media = std::make_shared<MediaUnits>(units_);
    draft.max_tokens = max_tokens;
    return draft;
  }

 private:
  std::vector<Token> tokens_;
  MediaUnits units_;
};

}  // namespace chasqui
