// The Embedder that libllama computes. Its thread has low priority and computes alone while a model generates, and few
// tokens at once, so that steps of running streams never wait for it. While none does, it has as many compute threads,
// of the same priority, as are worth it, and larger chunks. Made and used on that thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/core_share.h"
#include "model/embedder.h"
#include "model/llama_weights.h"
#include "model/thread_choice.h"

struct llama_context;

namespace chasqui {

struct EmbedderConfig {
  Pooling pooling = Pooling::mean;
  TokenCount tokens_max = 0;           // of one input; at most what the model was trained with
  std::int32_t chunk_tokens = 512;     // computed at once, where an input can be divided
  LlamaOptionsPtr llama{};             // llama-server's flags for contexts; null: libllama's defaults
  std::shared_ptr<CoreShare> cores{};  // null: one compute thread
  std::int32_t threads = 0;            // at most; 0: as many as there are cores
};

class LlamaEmbedder final : public Embedder {
 public:
  // Lowers the priority of the calling thread. Errors: the model has no head for ranking, or no context could be made.
  static Result<std::unique_ptr<LlamaEmbedder>> make(WeightsPtr weights, const EmbedderConfig& config);
  ~LlamaEmbedder() override;
  LlamaEmbedder(const LlamaEmbedder&) = delete;
  LlamaEmbedder& operator=(const LlamaEmbedder&) = delete;

  const EmbedderShape& shape() const override { return shape_; }
  Result<std::vector<Embedded>> embed(std::span<const std::vector<Token>> inputs, const AdapterSet* adapters) override;

 private:
  // A row of the running chunk: the token at `position` of `input`.
  struct Row {
    std::size_t input = 0;
    TokenCount position = 0;
  };

  explicit LlamaEmbedder(WeightsPtr weights) : weights_(std::move(weights)) {}
  Result<void> open(const EmbedderConfig& config);
  // For so many tokens at once; in the place of the one before.
  Result<void> make_context(std::uint32_t chunk);
  Result<void> apply_adapters();
  Result<void> compute(std::span<const std::vector<Token>> inputs, const std::vector<Row>& rows);
  Result<void> take(std::span<const std::vector<Token>> inputs, const std::vector<Row>& rows,
                    std::vector<Embedded>& out);
  void use_threads(const std::vector<Row>& rows, TimePoint now);
  std::size_t rows_most() const;  // of the next chunk
  std::int32_t sequence_of(std::size_t input) const { return static_cast<std::int32_t>(input % kSequences); }

  // Inputs of one chunk: as many as can be begun in it, and one that goes on.
  static constexpr std::size_t kSequences = 64;

  const WeightsPtr weights_;
  EmbedderShape shape_;
  bool whole_ = false;  // tokens see those that follow: inputs are not divided, and the chunk grows with the longest
  std::size_t chunk_ = 0;
  Duration row_time_{};  // of the last chunk; zero: nothing was computed
  llama_context* context_ = nullptr;
  std::vector<AdapterUse> adapters_;  // that the context has
  bool counts_adapters_ = true;       // in the next decode, see LlamaWeights::adapters_lock()
  LlamaOptionsPtr llama_;
  std::shared_ptr<CoreShare> cores_;
  std::optional<ThreadChoice> choice_;  // where there are cores to choose among
  Batch load_;                          // what a chunk looks like to the choice
  std::int32_t threads_ = 1;
};

}  // namespace chasqui
