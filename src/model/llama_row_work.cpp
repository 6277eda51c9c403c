#include "model/llama_row_work.h"

#include <ggml-cpu.h>
#include <ggml.h>

#include "base/error.h"

namespace chasqui {

void LlamaRowWork::FreeContext::operator()(ggml_context* context) const { ggml_free(context); }

LlamaRowWork::LlamaRowWork() {
  constexpr std::size_t kNodes = 4;
  const std::size_t bytes = ggml_graph_overhead_custom(kNodes, false) + kNodes * ggml_tensor_overhead() + 1024;
  context_.reset(ggml_init({.mem_size = bytes, .mem_buffer = nullptr, .no_alloc = false}));
  CHECK(context_ != nullptr, "no memory for a graph of one operation");
  ggml_tensor* const node =
      ggml_custom_4d(context_.get(), GGML_TYPE_F32, 1, 1, 1, 1, nullptr, 0, take_part, GGML_N_TASKS_MAX, this);
  graph_ = ggml_new_graph_custom(context_.get(), kNodes, false);
  ggml_build_forward_expand(graph_, node);
}

void LlamaRowWork::run(ggml_threadpool* pool, std::int32_t threads, std::size_t count, RowJob& job) {
  job_ = &job;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  ggml_cplan plan = ggml_graph_plan(graph_, threads, pool);
  memory_.resize(plan.work_size);
  plan.work_data = memory_.data();
  const ggml_status status = ggml_graph_compute(graph_, &plan);
  CHECK(status == GGML_STATUS_SUCCESS, "the compute threads did not do a graph of one operation");
  CHECK(next_.load(std::memory_order_relaxed) >= count, "a row was left out");
}

// On each of the threads.
void LlamaRowWork::take_part(ggml_tensor*, int thread, int, void* self) {
  auto& work = *static_cast<LlamaRowWork*>(self);
  for (;;) {
    const std::size_t row = work.next_.fetch_add(1, std::memory_order_relaxed);
    if (row >= work.count_) return;
    work.job_->run(row, static_cast<std::size_t>(thread));
  }
}

}  // namespace chasqui
