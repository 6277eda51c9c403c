// Requests for tests: valid unless the test says otherwise, with ids and prompts that tell them apart. Any thread.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/request.h"

namespace chasqui {

inline constexpr ServiceClass kInteractive = ServiceClass::interactive;
inline constexpr ServiceClass kStandard = ServiceClass::standard;
inline constexpr ServiceClass kBackground = ServiceClass::background;

inline RequestLimits test_limits() {
  RequestLimits limits;
  limits.vocabulary = 1000;
  limits.context = 100;
  limits.slots = 16;
  return limits;
}

// `length` tokens that depend on `salt`, so that two prompts seldom look alike.
inline std::vector<Token> test_prompt(TokenCount length, std::uint64_t salt = 0, TokenCount vocabulary = 1000) {
  std::vector<Token> prompt(static_cast<std::size_t>(length));
  std::uint64_t state = salt * 0x9E3779B97F4A7C15ull + 1;
  std::generate(prompt.begin(), prompt.end(), [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<Token>((state >> 33) % static_cast<std::uint64_t>(vocabulary));
  });
  return prompt;
}

// A valid request, made by make_request(). CHECKs that it is one.
inline RequestPtr test_request(std::uint64_t id, RequestDraft draft, const RequestLimits& limits = test_limits(),
                               TimePoint now = {}) {
  Result<RequestPtr> request = make_request(RequestId{id}, std::move(draft), limits, now);
  CHECK(request.has_value(), request.error().message);
  return std::move(*request);
}

inline RequestPtr test_request(std::uint64_t id, TokenCount prompt, std::int64_t max_tokens,
                               const RequestLimits& limits = test_limits(), TimePoint now = {}) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt, id);
  draft.max_tokens = max_tokens;
  return test_request(id, std::move(draft), limits, now);
}

}  // namespace chasqui
