// What a sequence says, in order: where it stands while it waits, how far its prompt has been prefilled and how likely
// the tokens of it were where it asks for that, any number of text events, then exactly one terminal event
// (one-terminal). Written by a worker, read by the loop. Plain values that are moved, never shared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "core/cache_use.h"
#include "core/sampling.h"
#include "core/types.h"

namespace chasqui {

enum class FinishReason {
  stop,       // an end-of-generation token or a stop string
  length,     // max_tokens, or the context is full
  cancelled,  // the client left or asked
  deadline,   // its time is up; what was generated so far has been sent
  error,      // Event::error says what
};
std::string_view name(FinishReason reason);

// Times are durations so that they can be shown without knowing the clock.
struct Usage {
  TokenCount prompt = 0;      // tokens of the prompt
  TokenCount cached = 0;      // … of which were not computed again
  TokenCount completion = 0;  // tokens generated, the end-of-generation token included
  TokenCount begun = 0;       // … of which another node has generated; all times are those of the others
  Duration queue{};           // arrival → first step
  Duration prefill{};         // first step → first token
  Duration decode{};          // first token → last token
  std::int32_t steps = 0;     // batches with rows of it
  std::int32_t shared = 0;    // … of which others had rows, too
  std::int32_t preemptions = 0;
  Duration cpu{};                  // processor time of its shares of these batches
  std::optional<double> joules;    // … and energy, where the machine tells
  TokenCount draft_tokens = 0;     // that were checked
  TokenCount accepted_tokens = 0;  // … and accepted
  TokenCount forced_tokens = 0;    // of the completion, that were not sampled: a grammar left no choice
  // Of the pictures and sounds of the prompt, or parts of them: those that were read, encoded for this request or as
  // they had been before. The others came from the prefix cache.
  std::int32_t media_encoded = 0;
  std::int32_t media_reused = 0;
  bool truncated = false;         // the context was full: the answer ended there, or some of it was taken out
  std::optional<CacheUse> cache;  // with Request::tell_cache, once it has started
};

// A piece of a prompt that was prefilled in one step.
struct PrefillChunk {
  Duration begin{};  // since the request's arrival
  Duration end{};
  TokenCount tokens = 0;
};

struct Event {
  enum class Kind { queued, progress, prompt, text, finished };

  RequestId request;
  Kind kind = Kind::text;
  // text: complete UTF-8 characters, possibly of several tokens; may be empty in a finished event.
  std::string text;
  // With SamplingParams::chances, of the event's token: itself, then the most likely ones in their order.
  std::vector<TokenChance> chances;
  Token token = -1;       // the one that was sampled, or forced
  TokenCount tokens = 0;  // how many tokens this event stands for
  Duration since_last{};  // … and the time since the one before; zero for the first
  bool first = false;     // the first token of the answer
  Duration late{};        // … which came so much later than was forecast; negative: earlier
  ServiceClass service_class = ServiceClass::standard;

  // queued only; said about once a second while the request waits for a slot
  std::int32_t position = 0;  // requests that go before it
  Duration wait{};            // predicted time until its first step

  // progress only, with Request::tell_progress; `usage` has the rest. Said when the request gets its slot, and after
  // each step that prefilled some of the prompt
  TokenCount prefilled = 0;  // tokens of the prompt that are in the model, the cached ones included

  // prompt only, with Request::tell_prompt: of the next tokens of the prompt, from the second one on, what `chances` is
  // of a sampled one.
  std::vector<std::vector<TokenChance>> prompt_chances;

  // finished only
  FinishReason reason = FinishReason::stop;
  bool time_is_up = false;  // with FinishReason::length: Request::predict_limit
  std::string stop_string;  // the stop string that ended it, if one did
  Usage usage;              // with Request::tell_usage in text events, too
  Error error;              // with FinishReason::error
  // With Request::keep_tokens: all that was sampled, the end-of-generation token and those of a stop string included.
  std::vector<Token> generated;
  std::int32_t choice = 0;  // which of the answers that one client waits for, set by the caller that asked for several
  bool asked = false;       // with FinishReason::cancelled: by a client that stays and waits for the end
  std::vector<PrefillChunk> chunks;  // with Request::traced
};

}  // namespace chasqui
