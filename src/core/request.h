// A request: the immutable, validated work order that every door hands to the engine. It cannot exist unless it is
// valid, so nothing behind make_request() checks client input again. Made on the loop or in the offload pool, then
// shared read-only by the loop and one worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "core/adapter_set.h"
#include "core/checkpoints.h"
#include "core/media.h"
#include "core/sampling.h"
#include "core/schema_order.h"
#include "core/types.h"

namespace chasqui {

// What a door has read from a client, not yet trusted.
struct RequestDraft {
  std::vector<Token> prompt;  // below zero: a place of one of `media`
  std::vector<Token> begun;   // set by the server, never read from a client; see Request
  MediaUnitsPtr media;        // null: the prompt is text alone
  SamplingParams sampling;
  std::optional<Grammar> grammar;  // made ready by the model as `parts`
  std::string grammar_field;       // where it comes from, for errors; empty: `grammar`
  SamplingPartsPtr parts;
  std::vector<std::pair<std::string, float>> text_bias;  // for logit_bias, once it is tokenized
  std::vector<std::string> stop;
  std::vector<Token> stop_tokens;            // like the model's own end-of-generation tokens
  std::int32_t indent_min = 0;               // of each line after the first, else the answer ends; see IndentGuard
  std::optional<std::int64_t> max_tokens;    // none or -1: until the context is full
  std::optional<std::int64_t> timeout_ms;    // from arrival to the last token; none: the server's default
  std::optional<std::int64_t> prompt_ms;     // t_max_prompt_ms: checked, without effect, as in llama-server
  std::optional<std::int64_t> predict_ms;    // from the first token to the last, once there was a line break
  std::optional<std::int64_t> ttft_ms;       // from arrival to the first token; over it the request fails
  Duration ttft_target{};                    // when its first token should come; zero: as its class has it
  Duration tpot_target{};                    // … and each one after it, likewise
  std::uint32_t group = 0;                   // of the tenant's requests, which share what the tenant gets
  std::optional<std::int64_t> ping_seconds;  // silence after which its stream gets a comment; below 1: never
  ServiceClass service_class = ServiceClass::standard;
  Tenant tenant;
  TokenCount draft_tokens_max = -1;     // of its next tokens, in one step; -1: as many as the server makes
  bool tell_usage = false;              // with every token
  bool returns = false;                 // its client is expected back with what it says, and more
  bool tell_cache = false;              // what the prefix cache has decided
  bool tell_progress = false;           // how far the prompt has been prefilled, after each step
  bool tell_prompt = false;             // how likely the tokens of the prompt were, as `sampling.chances` says
  bool special_pieces = false;          // render control tokens (<|im_end|> …) as text
  std::vector<Token> shown_tokens;      // … only these control tokens, in any case
  bool use_cache = true;                // begin with what was computed before, and keep what is computed now
  std::vector<TokenCount> boundaries;   // where the parts of a chat begin in the prompt; see plan_checkpoints()
  std::int32_t slot_label = -1;         // see Request
  std::uint64_t pin = 0;                // set by the server, never read from a client; see Request
  bool keep_tokens = false;             // the finished event brings the tokens that were generated
  AdapterSetPtr adapters;               // null: the model alone
  bool traced = false;                  // … and the pieces in which the prompt was prefilled
  bool deterministic = false;           // the same bytes in any company and whatever is in the cache
  std::optional<std::int64_t> keep;     // where the context is shifted: of the prompt, so many tokens stay; -1: all
  std::optional<std::int64_t> discard;  // … and so many behind them go each time; 0: half of them
  std::optional<std::int64_t> chunk;    // see Request

  SchemaOrder schema_order = SchemaOrder::written;
  bool schemas_converted = false;             // schemas become grammars by llama-common's converter, not by ours
  std::vector<std::string> dropped_keywords;  // of a schema, which the answer may not keep to: the client is told
};

// What the server allows; constant after start.
struct RequestLimits {
  TokenCount vocabulary = 0;                                      // token ids are 0 … vocabulary-1
  std::vector<Token> end_tokens;                                  // that end each answer
  TokenCount context = 0;                                         // cells of one slot: prompt and answer together
  TokenCount rows_max = std::numeric_limits<TokenCount>::max();   // of one batch
  std::int32_t slots = std::numeric_limits<std::int32_t>::max();  // of all workers
  std::size_t stops_max = kSizeLimit<"stop">;                     // stop strings
  std::size_t stop_bytes_max = kSizeLimit<"stop_bytes">;
  std::size_t stops_bytes_max = kSizeLimit<"stops_bytes">;  // of all of them: each answer has its own copy
  std::size_t stop_tokens_max = kSizeLimit<"stop_tokens">;
  std::size_t logit_bias_max = kSizeLimit<"logit_bias">;
  std::int32_t chances_max = kCountLimit<"chances">;  // likely tokens told with each token
  TokenCount max_tokens_default = -1;
  Duration timeout_default = Duration::zero();  // zero: none
  Duration queue_timeout = Duration::zero();    // longest wait for a slot; zero: none
  TokenCount checkpoint_every = 0;              // see plan_checkpoints(); 0: none, for the model's memory can be cut
  TokenCount checkpoint_least = 0;              // tokens between two of them
  std::size_t checkpoints_max = 0;              // of one prompt; 0: no limit
  bool shifts = false;                          // an answer goes on where its context is full: see Sequence::shift()
  std::int64_t keep_default = 0;                // see RequestDraft::keep
  bool moves_text = false;                      // what a slot holds can be moved up
  std::int64_t chunk_default = 0;               // see RequestDraft::chunk
  TokenCount begin_tokens = 0;                  // tokens that the model wants at the beginning of each context
};

struct Request {
  RequestId id;
  std::vector<Token> prompt;        // 1 … context-1 tokens; below zero: a place of one of `media`
  std::vector<Token> begun;         // tokens of the answer that were generated elsewhere; fewer than max_tokens
  MediaUnitsPtr media;              // null: the prompt is text alone
  SamplingParams sampling;          // seed always set
  std::vector<std::string> stop;    // UTF-8, none is empty
  std::vector<Token> stop_tokens;   // of the vocabulary
  std::int32_t indent_min = 0;      // see RequestDraft
  SamplingPartsPtr parts;           // null: none are needed; what it points to belongs to the worker
  TokenCount max_tokens = 0;        // 0 … context - prompt; with shift_at, as many as were asked for
  bool limited_by_context = false;  // max_tokens was cut to what the context leaves, or there is no limit
  TimePoint arrival{};
  TimePoint deadline = kNever;
  TimePoint prompt_deadline = kNever;        // of the first token; not after `deadline`
  TimePoint start_deadline = kNever;         // it fails when it has not had a slot by then
  TimePoint first_token_deadline = kNever;   // … or its first token
  Duration predict_limit = Duration::max();  // from the first token on; it ends the answer after a line break
  Duration ttft_target{};                    // see RequestDraft
  Duration tpot_target{};                    // likewise
  std::optional<Duration> ping_every;  // silence after which its stream gets a comment; none: as the server has it
  TokenCount draft_tokens_max = -1;    // see RequestDraft
  bool tell_usage = false;             // text events have the usage so far
  bool returns = false;                // what it leaves in the cache is kept ahead of others
  bool tell_cache = false;             // usage has what the prefix cache has decided
  bool tell_progress = false;          // an event at its start and for each step that read some of the prompt
  bool tell_prompt = false;            // events with how likely its tokens were; then nothing of it is cached
  ServiceClass service_class = ServiceClass::standard;
  Tenant tenant;
  std::uint32_t group = 0;  // see RequestDraft
  bool special_pieces = false;
  std::vector<Token> shown_tokens;
  bool use_cache = true;
  std::vector<TokenCount> checkpoints;  // ascending positions in the prompt where a step ends and its state is kept
  std::int32_t slot_label = -1;         // under which slot it is noted for who saves slots; -1: that which it was in
  std::uint64_t pin = 0;  // all requests with the same one go to the same worker (a session's number); 0: to any
  bool keep_tokens = false;
  AdapterSetPtr adapters;
  std::vector<std::shared_ptr<const void>> adapter_leases;  // of `adapters`, which the worker remembers for longer
  bool traced = false;
  TokenCount shift_at = 0;  // so long, tokens of it are taken out: see Sequence::shift(); 0: never
  TokenCount keep = 0;      // … of those behind its first `keep`; fewer than shift_at
  TokenCount discard = 0;   // … so many at a time; 0: half of them
  TokenCount chunk = 0;     // texts of so many tokens that stand elsewhere in a slot are moved up; 0: none
  // The prompt is prefilled in chunks that end at fixed positions, all rows have a batch for themselves (`adapters`
  // says so), nothing is drafted, and only what was computed so is brought back.
  bool deterministic = false;
  // Of so many tokens that are in the cache, those that it may begin with: a picture or a sound as a whole or not at
  // all.
  TokenCount usable(TokenCount cached) const {
    if (!deterministic) return whole_units(media, cached);
    const TokenCount of_prompt =
        std::min(cached, static_cast<TokenCount>(prompt.size()));  // its answer comes row by row
    return whole_units(media, of_prompt / kFixedChunk * kFixedChunk);
  }
  // Tokens that are to be in the model before its first new one.
  TokenCount tokens() const { return static_cast<TokenCount>(prompt.size() + begun.size()); }
  std::vector<std::string> dropped_keywords;  // see RequestDraft
};
using RequestPtr = std::shared_ptr<const Request>;

// A seed for a draft that has none.
std::uint32_t random_seed();

// The refusal of a prompt of `tokens`, which `size` says in words; agents look for its words and its figures.
Error prompt_too_long(std::size_t tokens, TokenCount context, std::string_view size);

// Parts of what make_request() checks, for a draft that something is made from before.
Result<void> check_sampling(const SamplingParams& sampling, const RequestLimits& limits);
Result<void> check_draft(const RequestDraft& draft, const RequestLimits& limits);

// Errors name the field in the words of the OpenAI API (`max_tokens`, `stop`, `temperature` …).
Result<RequestPtr> make_request(RequestId id, RequestDraft draft, const RequestLimits& limits, TimePoint now);

}  // namespace chasqui
