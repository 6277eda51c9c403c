// The JSON that OpenAI's chat and text completion routes answer with, including llama-server's additions (`timings`).
// Pure writers, one object for each answer; loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/core/answer.h"
#include "base/json_writer.h"
#include "model/tokenizer.h"

namespace chasqui {

// What all chunks of one answer have in common.
struct AnswerHead {
  std::string id;  // "chatcmpl-…"
  std::string model;
  std::string fingerprint;
  std::int64_t created = 0;    // seconds since 1970
  bool include_usage = false;  // stream_options.include_usage

  // Of several answers: those of one prompt follow each other.
  std::int32_t prompts = 1;
  std::int32_t n = 1;                    // told for each prompt
  std::int32_t best_of = 1;              // made for each prompt; more than `n`: the most likely ones are told
  std::vector<std::string> echo = {};    // what comes before the text of each prompt's answers; empty: nothing
  const Tokenizer* tokenizer = nullptr;  // with logprobs
  std::vector<Token> firsts = {};        // with both: the first token of each prompt

  // Where a request asks for `__verbose`: appends that of an answer, which is the index-th of the request.
  std::function<void(const Collected& answer, std::size_t index, bool new_line, std::string& out)> verbose = nullptr;
};

// "stop" or "length"; a deadline cuts an answer short, which OpenAI's clients know as "length". "cancelled" is ours: a
// client asked for the end of a generation.
std::string_view openai_finish_reason(FinishReason reason);

// All together: each prompt counts once, and what was cached is what the first answer to it found.
Usage sum_usage(const std::vector<Usage>& usages, std::size_t of_one_prompt);

// `reasoning`: how many tokens of the answer were reasoning; none where that is not known.
void write_usage(JsonWriter& json, const Usage& usage, std::optional<TokenCount> reasoning = std::nullopt);
void write_timings(JsonWriter& json, const Usage& usage);
// Those of the first choice; the processor time is of all.
void write_timings(JsonWriter& json, const std::vector<Usage>& choices);
// llama-server's: {"total", "cache", "processed", "time_ms"}, of a reading event.
void write_prompt_progress(JsonWriter& json, const Event& reading);

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerHead head);
std::unique_ptr<AnswerWriter> make_completion_writer(AnswerHead head);

}  // namespace chasqui
