#include "model/gguf_summary.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "model/test_weights.h"

namespace chasqui {
namespace {

std::vector<std::byte> demo_bytes() {
  std::ifstream file(test_model_path(), std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

// What libllama finds when it loads the whole file is what its head alone says.
TEST(GgufSummary, AgreesWithTheLoadedModel) {
  const auto summary = summarize_gguf(test_model_path());
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  const ModelInfo& info = test_weights()->info();
  EXPECT_EQ(summary->architecture, info.architecture);
  EXPECT_EQ(summary->parameters, info.parameters);
  EXPECT_EQ(summary->tensor_bytes, info.size_bytes);
  EXPECT_EQ(summary->layers, info.layers);
  EXPECT_EQ(summary->embedding_length, info.embedding_length);
  EXPECT_EQ(summary->context_trained, info.context_trained);
  EXPECT_EQ(summary->vocabulary, static_cast<std::uint64_t>(info.vocabulary));
  EXPECT_EQ(summary->chat_template, info.chat_template);
  EXPECT_EQ(2 * (summary->key_values_per_cell + summary->value_values_per_cell), info.kv_bytes_per_cell);
  EXPECT_EQ(summary->trims_anywhere(), info.trims_anywhere());
  EXPECT_EQ(summary->kind, "model");
}

// Two of six layers attend, said for each; or one of four and the one that drafts, said once. The others have states.
TEST(GgufSummary, OnlyLayersThatAttendHavePositions) {
  const auto of = [](const std::string& name) {
    const auto summary = summarize_gguf(std::string(CHASQUI_BINARY_DIR) + "/models/" + name + ".gguf");
    CHECK(summary, name + " (make test-models)");
    return *summary;
  };
  const GgufSummary convolutions = of("random-hybrid");
  EXPECT_EQ(convolutions.key_values_per_cell, 2u * 2 * 64);
  EXPECT_EQ(convolutions.state_bytes_per_slot, 4u * 3 * 256 * sizeof(float));
  const GgufSummary delta_net = of("random-qwen35");
  EXPECT_TRUE(delta_net.hybrid);
  EXPECT_EQ(delta_net.key_values_per_cell, 2u * 2 * 64);
  EXPECT_EQ(delta_net.state_bytes_per_slot, 3u * (3 * (512 + 2 * 256) + 32 * 512) * sizeof(float));
  const auto loaded = LlamaWeights::from_file(std::string(CHASQUI_BINARY_DIR) + "/models/random-qwen35.gguf");
  ASSERT_TRUE(loaded);
  EXPECT_EQ((*loaded)->info().kv_bytes_per_cell, 2u * 2 * 2 * 2 * 64);
}

TEST(GgufSummary, BytesInMemorySayTheSame) {
  const auto summary = summarize_gguf(demo_bytes());
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_EQ(summary->parameters, test_weights()->info().parameters);
}

TEST(GgufSummary, WhatIsNoModelIsAnErrorThatNamesIt) {
  for (const char* path : {"/nonexistent.gguf", "/", "/dev/zero", "/proc/self/exe"}) {
    const auto summary = summarize_gguf(path);
    ASSERT_FALSE(summary.has_value()) << path;
    EXPECT_NE(summary.error().message.find(path), std::string::npos) << summary.error().message;
  }
}

TEST(GgufSummary, AFileThatIsCutShortAnywhereIsAnError) {
  const std::vector<std::byte> whole = demo_bytes();
  std::mt19937 dice(7);
  for (int i = 0; i < 200; ++i) {
    // Mostly within the head, which is where there is something to read.
    const std::size_t most = i % 4 == 0 ? whole.size() : std::min<std::size_t>(whole.size(), 64 * 1024);
    const std::size_t size = std::uniform_int_distribution<std::size_t>(0, most - 1)(dice);
    EXPECT_FALSE(summarize_gguf(std::span(whole).first(size)).has_value()) << size;
  }
}

// Whatever it says, it is said: no crash, no endless reading.
TEST(GgufSummary, AHeadWithWrongBytesIsASummaryOrAnError) {
  const std::vector<std::byte> whole = demo_bytes();
  std::mt19937 dice(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes(whole.begin(), whole.end());
    for (int k = 0; k < 1 + i % 8; ++k) {
      const auto at = std::uniform_int_distribution<std::size_t>(4, i % 2 == 0 ? 2048 : 60'000)(dice);
      bytes[at % bytes.size()] = static_cast<std::byte>(dice());
    }
    const auto summary = summarize_gguf(bytes);
    if (!summary) {
      EXPECT_NE(summary.error().message, "");
    }
  }
}

}  // namespace
}  // namespace chasqui
