// How well documents answer a question: POST /v1/rerank in the two dialects that llama-server knows (Jina's and TEI's),
// and /v1/score. Only for models with a head for ranking. Any thread; `served` is only read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/openai/embeddings.h"

namespace chasqui {

Result<VectorJob> prepare_rerank(const ServedModel& served, const std::string& body);
Result<VectorJob> prepare_score(const ServedModel& served, const std::string& body);

// What the head reads: the model's own template, or the two with special tokens around them.
std::vector<Token> rank_input(const ModelInfo& info, const Tokenizer& tokenizer, std::string_view query,
                              std::string_view document);

}  // namespace chasqui
