// The kernels for rows times a matrix that third_party/libllama puts into ggml, against ggml's routine for one row.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

// Of ggml, for one row times a matrix of Q4_0 in its order.
extern "C" void ggml_gemv_q4_0_8x8_q8_0(int depth, float* out, std::size_t stride, const void* matrix, const void* row,
                                        int rows, int columns);

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

// Where matrices are kept in the order that some kernels want; null: this CPU has none.
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

// Of random numbers, in a format, where `buffer` keeps it.
class Matrix {
 public:
  Matrix(ggml_type type, int depth, int columns, ggml_backend_buffer_type_t buffer)
      : depth_(depth), memory_(graph_memory()), backend_(ggml_backend_cpu_init()) {
    matrix_ = ggml_new_tensor_2d(memory_.get(), type, depth, columns);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(memory_.get(), buffer));
    const std::vector<float> numbers = random_numbers(static_cast<std::size_t>(depth * columns), 3);
    quantized_.resize(ggml_nbytes(matrix_));
    ggml_quantize_chunk(type, numbers.data(), quantized_.data(), 0, columns, depth, nullptr);
    ggml_backend_tensor_set(matrix_, quantized_.data(), 0, quantized_.size());
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

  // … by ggml's kernel for one row, of Q4_0 in its order.
  std::vector<float> by_ggml(const std::vector<float>& rows, int columns) const {
    std::vector<char> row(ggml_row_size(GGML_TYPE_Q8_0, depth_));
    std::vector<float> out(rows.size() / static_cast<std::size_t>(depth_) * static_cast<std::size_t>(columns));
    float* to = out.data();
    for (auto at = rows.begin(); at != rows.end(); at += depth_, to += columns) {
      ggml_get_type_traits_cpu(GGML_TYPE_Q8_0)->from_float(&*at, row.data(), depth_);
      ggml_gemv_q4_0_8x8_q8_0(depth_, to, static_cast<std::size_t>(columns), matrix_->data, row.data(), 1, columns);
    }
    return out;
  }

  // … by ggml's routine for one row and one column.
  std::vector<float> judged(const std::vector<float>& rows) const {
    const ggml_type_traits_cpu* own = ggml_get_type_traits_cpu(matrix_->type);
    const ggml_type_traits_cpu* other = ggml_get_type_traits_cpu(own->vec_dot_type);
    std::vector<char> row(ggml_row_size(own->vec_dot_type, depth_));
    const auto stride = static_cast<std::ptrdiff_t>(ggml_row_size(matrix_->type, depth_));
    std::vector<float> out;
    for (auto at = rows.begin(); at != rows.end(); at += depth_) {
      other->from_float(&*at, row.data(), depth_);
      for (auto column = quantized_.begin(); column != quantized_.end(); column += stride) {
        own->vec_dot(depth_, &out.emplace_back(), 0, &*column, 0, row.data(), 0, 1);
      }
    }
    return out;
  }

 private:
  const int depth_;
  Graph memory_;
  Backend backend_;
  ggml_tensor* matrix_ = nullptr;
  Buffer buffer_;
  std::vector<char> quantized_;
};

struct KernelShape {
  ggml_type type;
  int depth, columns;
};

// Bits of Q4_0 are those of ggml's kernel.
TEST(Q4Rows, ComeOutAsFromGgmlsKernelForOneRow) {
  if (reordered() == nullptr || ggml_cpu_has_avx2() == 0) GTEST_SKIP() << "this CPU has no such kernel";
  for (const auto& [depth, columns] : {std::pair(32, 16), std::pair(64, 8), std::pair(896, 152), std::pair(4864, 40)}) {
    const Matrix matrix(GGML_TYPE_Q4_0, depth, columns, reordered());
    const std::vector<float> rows = random_numbers(static_cast<std::size_t>(depth) * 37, 5);
    EXPECT_EQ(matrix.times(rows, 2), matrix.by_ggml(rows, columns)) << depth << " × " << columns;
  }
}

class GgmlRowKernels : public testing::TestWithParam<KernelShape> {};

TEST_P(GgmlRowKernels, SayWhatGgmlSaysAndTheSameInAnyCompany) {
  const auto [type, depth, columns] = GetParam();
  const bool repacked = type == GGML_TYPE_Q4_0;
  if (repacked && reordered() == nullptr) GTEST_SKIP() << "this CPU has no such kernel";
  const Matrix matrix(type, depth, columns, repacked ? reordered() : ggml_backend_cpu_buffer_type());
  const std::vector<float> all = random_numbers(static_cast<std::size_t>(depth) * 150, 5);
  const std::vector<float> judged = matrix.judged(all);
  const std::vector<float> most = matrix.times(all, 2);
  ASSERT_EQ(most.size(), judged.size());
  for (std::size_t i = 0; i < most.size(); ++i) {
    // Floats are added in another order.
    ASSERT_NEAR(most[i], judged[i], 2e-6f * static_cast<float>(depth)) << "number " << i;
  }
  for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 64, 65, 129}) {
    for (const int threads : {1, 2, 5}) {
      const std::vector<float> together = matrix.times({all.begin(), all.begin() + rows * depth}, threads);
      ASSERT_EQ(std::ssize(together), rows * columns);
      for (std::size_t i = 0; i < together.size(); ++i) {
        // Other processors have a kernel for one row, and others for several.
        const bool several = rows > 1 && (type == GGML_TYPE_Q4_K || type == GGML_TYPE_Q6_K);
        const bool k_rows = type == GGML_TYPE_Q5_K || several;
        const bool by_avx2 = ggml_cpu_has_avx2() != 0 && (repacked || (k_rows && ggml_cpu_has_avx512() == 0));
        const bool same = ggml_cpu_has_avx512_vnni() != 0 || by_avx2;
        const float allowed = same ? 0 : 4e-6f * static_cast<float>(depth);
        ASSERT_NEAR(together[i], most[i], allowed) << "number " << i << " of " << rows << " rows";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GgmlRowKernels,
                         testing::Values(KernelShape{GGML_TYPE_Q4_0, 32, 16}, KernelShape{GGML_TYPE_Q4_0, 64, 8},
                                         KernelShape{GGML_TYPE_Q4_0, 896, 152}, KernelShape{GGML_TYPE_Q4_0, 4864, 40},
                                         KernelShape{GGML_TYPE_Q8_0, 32, 16}, KernelShape{GGML_TYPE_Q8_0, 64, 5},
                                         KernelShape{GGML_TYPE_Q8_0, 896, 150}, KernelShape{GGML_TYPE_Q8_0, 4864, 33},
                                         KernelShape{GGML_TYPE_Q4_K, 256, 16}, KernelShape{GGML_TYPE_Q4_K, 2048, 150},
                                         KernelShape{GGML_TYPE_Q4_K, 5632, 5}, KernelShape{GGML_TYPE_Q5_K, 256, 16},
                                         KernelShape{GGML_TYPE_Q5_K, 512, 3}, KernelShape{GGML_TYPE_Q5_K, 2048, 150},
                                         KernelShape{GGML_TYPE_Q6_K, 256, 16}, KernelShape{GGML_TYPE_Q6_K, 512, 3},
                                         KernelShape{GGML_TYPE_Q6_K, 2048, 150},
                                         KernelShape{GGML_TYPE_Q6_K, 5632, 20}));

}  // namespace
}  // namespace chasqui
