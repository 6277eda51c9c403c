// The kernel for attention that third_party/libllama puts into ggml: against sums of doubles; and the bits of a row are
// the same with whatever other rows, and however many threads, it is computed.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <vector>

#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

struct Shape {
  int dimensions, heads, groups, rows, cells, streams = 1;
  float bias = 0, cap = 0;
  bool sinks = false, floats = false;
  friend std::ostream& operator<<(std::ostream& out, const Shape& s) {
    return out << s.dimensions << " dimensions, " << s.heads << " heads of " << s.groups << " groups, " << s.rows
               << " rows, " << s.cells << " cells, " << s.streams << " streams, bias " << s.bias << ", cap " << s.cap
               << (s.sinks ? ", sinks" : "") << (s.floats ? ", floats" : "");
  }
};

// Numbers for the largest shape of a test; smaller ones take the first rows of it.
class Attention {
 public:
  explicit Attention(const Shape& shape) : shape_(shape) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& out, int size) {
      out.resize(static_cast<std::size_t>(size));
      for (float& value : out) value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(normal(random)));
    };
    const int of_cells = shape.dimensions * shape.groups * shape.cells * shape.streams;
    fill(queries_, shape.dimensions * shape.heads * shape.rows * shape.streams);
    fill(keys_, of_cells);
    fill(values_, of_cells);
    fill(sinks_, shape.heads);
    // Each row sees the cells up to its own place from the end, but for every seventh.
    mask_.assign(static_cast<std::size_t>(shape.cells * shape.rows * shape.streams), 0);
    for (int stream = 0; stream < shape.streams; ++stream) {
      for (int row = 0; row < shape.rows; ++row) {
        for (int cell = 0; cell < shape.cells; ++cell) {
          const bool seen = cell == 0 || (cell < shape.cells - (shape.rows - row) / 2 - 70 * stream && cell % 7 != 3);
          if (!seen)
            mask_[index(cell, shape.cells, row, shape.rows, stream)] = -std::numeric_limits<float>::infinity();
          else if (shape.bias > 0)
            mask_[index(cell, shape.cells, row, shape.rows, stream)] = -float(cell % 13);
        }
      }
    }
  }

  // dimensions × heads × rows × streams, of the rows [first, first + rows).
  std::vector<float> compute(int first, int rows, int threads) const {
    const Shape& s = shape_;
    const ggml_init_params memory{std::size_t{64} << 20, nullptr, false};
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> context(ggml_init(memory), ggml_free);
    ggml_context* c = context.get();
    const ggml_type type = s.floats ? GGML_TYPE_F32 : GGML_TYPE_F16;
    ggml_tensor* q = ggml_new_tensor_4d(c, GGML_TYPE_F32, s.dimensions, rows, s.heads, s.streams);
    ggml_tensor* k = ggml_new_tensor_4d(c, type, s.dimensions, s.groups, s.cells, s.streams);
    ggml_tensor* v = ggml_new_tensor_4d(c, type, s.dimensions, s.groups, s.cells, s.streams);
    ggml_tensor* mask = ggml_new_tensor_4d(c, GGML_TYPE_F16, s.cells, rows, 1, s.streams);
    float* to = static_cast<float*>(q->data);
    for (int stream = 0; stream < s.streams; ++stream) {
      for (int head = 0; head < s.heads; ++head) {
        for (int row = first; row < first + rows; ++row, to += s.dimensions) {
          std::copy_n(&queries_[query(row, head, stream)], s.dimensions, to);
        }
      }
    }
    put(keys_, k);
    put(values_, v);
    auto* masks = static_cast<ggml_fp16_t*>(mask->data);
    for (int stream = 0; stream < s.streams; ++stream) {
      for (int row = first; row < first + rows; ++row) {
        ggml_fp32_to_fp16_row(&mask_[index(0, s.cells, row, s.rows, stream)], masks, s.cells);
        masks += s.cells;
      }
    }
    ggml_tensor* out = ggml_flash_attn_ext(c, q, ggml_permute(c, k, 0, 2, 1, 3), ggml_permute(c, v, 0, 2, 1, 3), mask,
                                           scale(), s.bias, s.cap);
    if (s.sinks) {
      ggml_tensor* sinks = ggml_new_tensor_1d(c, GGML_TYPE_F32, s.heads);
      std::memcpy(sinks->data, sinks_.data(), sinks_.size() * sizeof(float));
      ggml_flash_attn_ext_add_sinks(out, sinks);
    }
    ggml_cgraph* graph = ggml_new_graph(c);
    ggml_build_forward_expand(graph, out);
    EXPECT_EQ(ggml_graph_compute_with_ctx(c, graph, threads), GGML_STATUS_SUCCESS);
    const float* computed = static_cast<const float*>(out->data);
    return {computed, computed + ggml_nelements(out)};
  }

  std::vector<double> expected(int row, int head, int stream) const {
    const Shape& s = shape_;
    const int group = head / (s.heads / s.groups);
    const int half = 1 << static_cast<int>(std::log2(static_cast<double>(s.heads)));
    double slope = 1;
    if (s.bias > 0) {
      slope = head < half ? std::pow(std::pow(2.0, -double{s.bias} / half), head + 1)
                          : std::pow(std::pow(2.0, -double{s.bias} / 2 / half), 2 * (head - half) + 1);
    }
    std::vector<double> sum(static_cast<std::size_t>(s.dimensions));
    double total = s.sinks ? std::exp(static_cast<double>(sinks_[static_cast<std::size_t>(head)])) : 0;
    for (int cell = 0; cell < s.cells; ++cell) {
      double score = 0;
      for (int d = 0; d < s.dimensions; ++d) {
        score += double{queries_[query(row, head, stream) + static_cast<std::size_t>(d)]} *
                 keys_[cell_at(cell, group, stream) + static_cast<std::size_t>(d)];
      }
      score *= double{scale()};
      if (s.cap > 0) score = double{s.cap} * std::tanh(score / double{s.cap});
      const double weight = std::exp(score + slope * double{mask_[index(cell, s.cells, row, s.rows, stream)]});
      total += weight;
      for (int d = 0; d < s.dimensions; ++d) {
        sum[static_cast<std::size_t>(d)] +=
            weight * double{values_[cell_at(cell, group, stream) + static_cast<std::size_t>(d)]};
      }
    }
    for (double& value : sum) value /= total;
    return sum;
  }

  // Where compute() has what a row of a head becomes.
  std::size_t place(int row, int rows, int head, int stream) const {
    return index(0, shape_.dimensions, head, shape_.heads, stream * rows + row);
  }

 private:
  static std::size_t index(int a, int as, int b, int bs, int c) {
    return static_cast<std::size_t>((c * bs + b) * as + a);
  }
  std::size_t query(int row, int head, int stream) const {
    return static_cast<std::size_t>(((stream * shape_.heads + head) * shape_.rows + row) * shape_.dimensions);
  }
  std::size_t cell_at(int cell, int group, int stream) const {
    return static_cast<std::size_t>(((stream * shape_.cells + cell) * shape_.groups + group) * shape_.dimensions);
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.dimensions)); }
  static void put(const std::vector<float>& values, ggml_tensor* tensor) {
    if (tensor->type == GGML_TYPE_F32) {
      std::memcpy(tensor->data, values.data(), values.size() * sizeof(float));
    } else {
      ggml_fp32_to_fp16_row(values.data(), static_cast<ggml_fp16_t*>(tensor->data), std::ssize(values));
    }
  }

  const Shape shape_;
  std::vector<float> queries_, keys_, values_, sinks_, mask_;
};

const Shape kShapes[] = {
    {64, 14, 2, 1, 600},                        // a decode step of one stream: parts of cells
    {64, 14, 2, 1, 100},                        // … with few cells
    {64, 14, 2, 1, 300, 3},                     // a decode step of several
    {64, 14, 2, 5, 256},                        // draft tokens
    {64, 14, 2, 20, 300},                       // chunks of a prompt
    {64, 14, 2, 70, 333, 2},                    // … of two prompts
    {128, 8, 8, 33, 192},                       // each head with keys of its own
    {80, 4, 1, 37, 130},                        // one group
    {64, 12, 4, 9, 200, 1, 8.0f},               // ALiBi, and no power of two of heads
    {64, 8, 2, 9, 200, 1, 0, 30.0f},            // capped scores
    {64, 8, 1, 3, 200, 1, 0, 0, true},          // sinks
    {64, 8, 1, 1, 700, 1, 0, 0, true},          // … and parts
    {128, 6, 2, 11, 90, 1, 0, 0, false, true},  // keys of floats
    {64, 160, 2, 1, 600},                       // more heads in a group than a tile has rows
};

TEST(FlashTiles, ComputeAttention) {
  for (const Shape& shape : kShapes) {
    const Attention attention(shape);
    const std::vector<float> computed = attention.compute(0, shape.rows, 2);
    double most = 0;
    for (int stream = 0; stream < shape.streams; ++stream) {
      for (int head = 0; head < shape.heads; ++head) {
        for (int row = 0; row < shape.rows; ++row) {
          const std::vector<double> expected = attention.expected(row, head, stream);
          const std::size_t at = attention.place(row, shape.rows, head, stream);
          for (std::size_t d = 0; d < expected.size(); ++d) {
            most = std::max(most, std::abs(expected[d] - double{computed[at + d]}));
          }
        }
      }
    }
    EXPECT_LT(most, 2e-5) << shape;
  }
}

TEST(FlashTiles, ARowHasTheSameBitsInAnyCompanyAndWithAnyThreads) {
  for (const Shape& shape : {Shape{64, 14, 2, 90, 300}, Shape{64, 14, 2, 23, 200, 3}, Shape{128, 8, 8, 70, 192}}) {
    const Attention attention(shape);
    const std::vector<float> all = attention.compute(0, shape.rows, 2);
    for (const int threads : {1, 3, 7}) EXPECT_EQ(attention.compute(0, shape.rows, threads), all) << shape;
    for (const int rows : {2, 3, 8, 17}) {
      const int first = shape.rows - rows;
      const std::vector<float> some = attention.compute(first, rows, 2);
      for (int stream = 0; stream < shape.streams; ++stream) {
        for (int row = 0; row < rows; ++row) {
          const auto size = static_cast<std::size_t>(shape.dimensions * shape.heads) * sizeof(float);
          const float* there = &all[attention.place(first + row, shape.rows, 0, stream)];
          EXPECT_EQ(std::memcmp(&some[attention.place(row, rows, 0, stream)], there, size), 0)
              << shape << ": row " << row << " of " << rows << " in stream " << stream;
        }
      }
    }
  }
}

}  // namespace
}  // namespace chasqui
