// What a request gets where it does not say: llama-server's defaults, changed by what the model's author recommends,
// and by the command line. Plain data, made at start, constant afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/sampling.h"
#include "core/schema_order.h"

namespace chasqui {

struct RequestDefaults {
  SamplingParams sampling;
  std::vector<std::string> stop;  // of requests that name none
  std::string grammar;            // GBNF, of requests that name no grammar, schema or tools; empty: none
  bool special_pieces = false;    // control tokens are rendered as text
  SchemaOrder schema_order = SchemaOrder::written;

  // Of chats.
  std::map<std::string, std::string> template_args;  // JSON text by name
  std::optional<bool> enable_thinking;               // none: as the template does
  bool split_reasoning = true;                       // false: reasoning stays in the content
  std::optional<TokenCount> reasoning_budget;        // tokens; none: no limit
  std::string reasoning_message;                     // said where the budget ends
  bool parse_answers = true;                         // false: an answer is content, whatever it looks like
  bool prefill = true;                               // a last message of the assistant is gone on with

  std::string media_folder;  // whose files clients may name; empty: none

  std::int32_t embedding_norm = 2;  // as llama-server's embd_normalize
  bool suffix_first = false;        // in prompts for gaps
};

}  // namespace chasqui
