// Lets the compute threads of libllama do other work than graphs, between two decodes: a graph of one operation of our
// own. Owned by a LlamaModel; its thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/model.h"

struct ggml_cgraph;
struct ggml_context;
struct ggml_tensor;
struct ggml_threadpool;

namespace chasqui {

class LlamaRowWork {
 public:
  LlamaRowWork();
  LlamaRowWork(const LlamaRowWork&) = delete;
  LlamaRowWork& operator=(const LlamaRowWork&) = delete;

  // See Model::for_each_row(). REQUIRES: 1 ≤ threads, and the pool has so many
  void run(ggml_threadpool* pool, std::int32_t threads, std::size_t count, RowJob& job);

 private:
  struct FreeContext {
    void operator()(ggml_context* context) const;
  };
  static void take_part(ggml_tensor* result, int thread, int threads, void* self);

  std::unique_ptr<ggml_context, FreeContext> context_;
  ggml_cgraph* graph_ = nullptr;
  std::vector<std::uint8_t> memory_;  // that the graph's plan wants
  // Of the call that runs.
  RowJob* job_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
};

}  // namespace chasqui
