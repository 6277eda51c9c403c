// The kernel for rows times a matrix of Q4_0 that third_party/libllama puts into ggml: rows together come out as each
// alone, which another kernel computes.
#include <algorithm>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Graph = std::unique_ptr<ggml_context, Freed<ggml_free>>;
using Buffer = std::unique_ptr<ggml_backend_buffer, Freed<ggml_backend_buffer_free>>;
using Backend = std::unique_ptr<ggml_backend, Freed<ggml_backend_free>>;

// Where matrices are kept in the order that the kernels want; null: this CPU has none.
ggml_backend_buffer_type_t reordered() {
  ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const auto more = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
  for (ggml_backend_buffer_type_t* type = more != nullptr ? more(device) : nullptr; type != nullptr && *type != nullptr;
       ++type) {
    if (std::string_view(ggml_backend_buft_name(*type)) == "CPU_REPACK") return *type;
  }
  return nullptr;
}

Graph graph_memory() { return Graph(ggml_init({std::size_t{1} << 20, nullptr, true})); }

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& number : out) number = normal(random);
  return out;
}

class Matrix {
 public:
  Matrix(int depth, int columns)
      : depth_(depth), columns_(columns), memory_(graph_memory()), backend_(ggml_backend_cpu_init()) {
    matrix_ = ggml_new_tensor_2d(memory_.get(), GGML_TYPE_Q4_0, depth, columns);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(memory_.get(), reordered()));
    const std::vector<float> numbers = random_numbers(static_cast<std::size_t>(depth * columns), 3);
    std::vector<char> quantized(ggml_nbytes(matrix_));
    ggml_quantize_chunk(GGML_TYPE_Q4_0, numbers.data(), quantized.data(), 0, columns, depth, nullptr);
    ggml_backend_tensor_set(matrix_, quantized.data(), 0, quantized.size());
  }

  // columns × rows
  std::vector<float> times(const std::vector<float>& rows, int threads) const {
    const Graph local = graph_memory();
    ggml_tensor* x = ggml_new_tensor_2d(local.get(), GGML_TYPE_F32, depth_, std::ssize(rows) / depth_);
    ggml_tensor* out = ggml_mul_mat(local.get(), matrix_, x);
    ggml_cgraph* graph = ggml_new_graph(local.get());
    ggml_build_forward_expand(graph, out);
    const Buffer numbers(ggml_backend_alloc_ctx_tensors(local.get(), backend_.get()));
    ggml_backend_tensor_set(x, rows.data(), 0, rows.size() * sizeof(float));
    ggml_backend_cpu_set_n_threads(backend_.get(), threads);
    EXPECT_EQ(ggml_backend_graph_compute(backend_.get(), graph), GGML_STATUS_SUCCESS);
    std::vector<float> result(static_cast<std::size_t>(ggml_nelements(out)));
    ggml_backend_tensor_get(out, result.data(), 0, result.size() * sizeof(float));
    return result;
  }

 private:
  const int depth_;
  const int columns_;
  Graph memory_;
  Backend backend_;
  ggml_tensor* matrix_ = nullptr;
  Buffer buffer_;
};

TEST(Q4Rows, TogetherComeOutAsEachAlone) {
  if (reordered() == nullptr) GTEST_SKIP() << "this CPU has no such kernel";
  struct Shape {
    int depth, columns;
  };
  for (const auto& [depth, columns] : {Shape{32, 16}, Shape{64, 8}, Shape{896, 152}, Shape{4864, 40}}) {
    const Matrix matrix(depth, columns);
    const std::vector<float> all = random_numbers(static_cast<std::size_t>(depth) * 37, 5);
    std::vector<float> alone;
    for (auto row = all.begin(); row != all.end(); row += depth) {
      const std::vector<float> one = matrix.times({row, row + depth}, 1);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    for (const int rows : {2, 3, 4, 5, 7, 8, 12, 16, 20, 37}) {
      const std::vector<float> together = matrix.times({all.begin(), all.begin() + rows * depth}, 2);
      ASSERT_EQ(std::ssize(together), rows * columns);
      for (std::size_t i = 0; i < together.size(); ++i) {
        ASSERT_EQ(together[i], alone[i]) << depth << " × " << columns << ", number " << i << " of " << rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace chasqui
