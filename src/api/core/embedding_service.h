// Where handlers have inputs embedded: on a thread of its own, a few inputs at a time, of all requests that wait
// together. The model's context for it is made with the first request, so that servers that embed nothing pay nothing.
// Owned by serve(); loop thread only, except config() and configure().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core/embedding_line.h"
#include "base/clock.h"
#include "base/metric_set.h"
#include "core/event.h"
#include "model/embedder.h"
#include "model/loaded_model.h"
#include "net/exchange.h"
#include "net/offload.h"

namespace chasqui {

// What one request gets.
struct EmbeddedInputs {
  std::vector<Embedded> vectors;  // empty when the client left meanwhile
  Usage usage;                    // jobs count as steps, and their time as prefill
};

struct EmbeddingConfig : EmbedderWish {
  bool leaves = false;  // the context, and its hold on the weights, are given back when no request waits
};

class EmbeddingService {
 public:
  // `model` and `loop` outlive it.
  EmbeddingService(const LoadedModel& model, net::EventLoop& loop, const EmbeddingConfig& config);
  ~EmbeddingService();
  EmbeddingService(const EmbeddingService&) = delete;
  EmbeddingService& operator=(const EmbeddingService&) = delete;

  // What --pooling, or else the model says; where both are silent, the mean. An error when the model cannot.
  static Result<EmbeddingConfig> configure(const LoadedModel& model, const std::optional<Pooling>& wish,
                                           TokenCount context, bool leaves = false);

  const EmbeddingConfig& config() const { return config_; }
  // By the model with `adapters`. Tenants take turns. Error overloaded where the inputs of others have too many tokens
  // already.
  net::Awaitable<Result<EmbeddedInputs>> embed(net::HttpExchange& exchange, std::uint32_t tenant,
                                               AdapterSetPtr adapters, std::vector<std::vector<Token>> inputs);

  const MetricSet& metrics() const { return metrics_; }
  // The context, which takes long to free: the last owner frees it, on whatever thread, when the service has gone.
  std::shared_ptr<const void> computing() const;

 private:
  // Of the thread: made there, used there.
  struct Bench;

  struct Waiting;

  net::Awaitable<Result<EmbeddedInputs>> embed_all(net::HttpExchange& exchange, std::uint32_t tenant,
                                                   AdapterSetPtr adapters, std::vector<std::vector<Token>> inputs);
  net::Awaitable<void> compute_next();

  const EmbeddingConfig config_;
  const RealClock clock_;
  std::shared_ptr<Bench> bench_;
  std::size_t waiting_ = 0;         // requests that were not answered yet
  std::size_t waiting_tokens_ = 0;  // … of their inputs
  net::EventLoop& loop_;
  EmbeddingLine line_;
  bool computing_ = false;  // one of the requests does, for all of them
  std::unique_ptr<net::OffloadPool> pool_;
  MetricSet metrics_;
  Counter inputs_{metrics_, {"chasqui_embedding_inputs_total", "Inputs given to the model to embed or to rank."}};
  Counter tokens_{metrics_,
                  {"chasqui_embedding_tokens_total", "Tokens of inputs given to the model to embed or to rank."}};
};

}  // namespace chasqui
