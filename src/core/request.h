// A request: the immutable, validated work order that every door hands to the engine. It cannot exist unless it is
// valid, so nothing behind make_request() checks client input again. Made on the loop or in the offload pool, then
// shared read-only by the loop and one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "core/sampling.h"
#include "core/types.h"

namespace chasqui {

// What a door has read from a client, not yet trusted.
struct RequestDraft {
  std::vector<Token> prompt;
  SamplingParams sampling;
  std::vector<std::string> stop;
  std::optional<std::int64_t> max_tokens;  // none or -1: until the context is full
  std::optional<std::int64_t> timeout_ms;  // from arrival to the last token; none: the server's default
  ServiceClass service_class = ServiceClass::standard;
  Tenant tenant;
  bool special_pieces = false;  // render control tokens (<|im_end|> …) as text
  bool use_cache = true;        // begin with what was computed before, and keep what is computed now
  std::uint64_t pin = 0;        // set by the server, never read from a client; see Request
  bool keep_tokens = false;     // the finished event brings the tokens that were generated
  bool traced = false;          // … and the pieces in which the prompt was read
};

// What the server allows; constant after start.
struct RequestLimits {
  TokenCount vocabulary = 0;   // token ids are 0 … vocabulary-1
  TokenCount context = 0;      // cells of one slot: prompt and answer together
  std::size_t stops_max = 16;  // stop strings
  std::size_t stop_bytes_max = 1024;
  std::size_t logit_bias_max = 1024;
  TokenCount max_tokens_default = -1;
  Duration timeout_default = Duration::zero();  // zero: none
};

struct Request {
  RequestId id;
  std::vector<Token> prompt;        // 1 … context-1 tokens
  SamplingParams sampling;          // seed always set
  std::vector<std::string> stop;    // UTF-8, none is empty
  TokenCount max_tokens = 0;        // 0 … context - prompt
  bool limited_by_context = false;  // max_tokens was cut to what the context leaves
  TimePoint arrival{};
  TimePoint deadline = kNever;
  ServiceClass service_class = ServiceClass::standard;
  Tenant tenant;
  bool special_pieces = false;
  bool use_cache = true;
  std::uint64_t pin = 0;  // all requests with the same one go to the same worker (a session's number); 0: to any
  bool keep_tokens = false;
  bool traced = false;
};
using RequestPtr = std::shared_ptr<const Request>;

// Errors name the field in the words of the OpenAI API (`max_tokens`, `stop`, `temperature` …).
Result<RequestPtr> make_request(RequestId id, RequestDraft draft, const RequestLimits& limits, TimePoint now);

}  // namespace chasqui
