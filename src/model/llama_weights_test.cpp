#include "model/llama_weights.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/llama_runtime.h"
#include "model/loaded_model.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() / ("chasqui-weights-" + std::to_string(::getpid()) + ".gguf")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string load_error(const std::string& path) {
  const auto loaded = LlamaWeights::from_file(path);
  EXPECT_FALSE(loaded);
  if (loaded) return {};
  EXPECT_EQ(loaded.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(loaded.error().field, "model");
  EXPECT_NE(loaded.error().message.find(path), std::string::npos) << loaded.error().message;
  return loaded.error().message;
}

TEST(LlamaRuntime, StartsAndTellsWhatItIs) {
  ASSERT_TRUE(start_llama_runtime());
  ASSERT_TRUE(start_llama_runtime());
  EXPECT_EQ(describe_llama_runtime().find("libllama "), 0u);
}

TEST(LlamaWeights, SaysWhatIsWrongWithAFile) {
  EXPECT_NE(load_error("/nowhere/model.gguf").find("No such file"), std::string::npos);
  EXPECT_NE(load_error("/tmp").find("folder"), std::string::npos);
  EXPECT_NE(load_error("/dev/null").find("regular file"), std::string::npos);
  const TemporaryFile empty("");
  EXPECT_NE(load_error(empty.path()).find("too short"), std::string::npos);
}

TEST(LlamaWeights, RefusesATextFile) {
  const TemporaryFile text("This is a letter to a friend, and no model at all.\n");
  EXPECT_NE(load_error(text.path()).find("not a GGUF file"), std::string::npos);
}

TEST(LlamaWeights, RefusesGarbageBehindTheMagic) {
  const TemporaryFile garbage("GGUF" + std::string(4096, '\x5A'));
  EXPECT_FALSE(load_error(garbage.path()).empty());
}

TEST(LlamaWeights, RefusesAFileThatIsCutShort) {
  const std::string whole = read_file(test_model_path());
  for (std::size_t size : {std::size_t{100}, whole.size() / 100, whole.size() / 2, whole.size() - 1}) {
    const TemporaryFile cut(whole.substr(0, size));
    const std::string message = load_error(cut.path());
    EXPECT_NE(message.find(size < whole.size() / 2 ? "key-value" : "cut short"), std::string::npos) << message;
  }
}

TEST(LlamaWeights, KnowsTheModel) {
  const ModelInfo& info = test_weights()->info();
  EXPECT_EQ(info.path, test_model_path());
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.architecture.empty());
  EXPECT_FALSE(info.format.empty());
  EXPECT_GT(info.parameters, 100'000u);
  EXPECT_GT(info.size_bytes, 100'000u);
  EXPECT_GT(info.context_trained, 0);
  EXPECT_GT(info.layers, 0);
  EXPECT_GT(info.vocabulary, 256);
  EXPECT_GE(info.eos, 0);
  EXPECT_FALSE(info.eos_text.empty());
  EXPECT_TRUE(info.trims_anywhere());
}

TEST(LlamaWeights, ProgressIsToldAndCanStop) {
  std::vector<double> steps;
  WeightsOptions options;
  options.progress = [&](double done) {
    steps.push_back(done);
    return true;
  };
  ASSERT_TRUE(LlamaWeights::from_file(test_model_path(), options));
  ASSERT_FALSE(steps.empty());
  EXPECT_DOUBLE_EQ(steps.back(), 1.0);

  options.progress = [](double) { return false; };
  const auto stopped = LlamaWeights::from_file(test_model_path(), options);
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("stopped"), std::string::npos);
}

TEST(LlamaWeights, LoadsFromMemory) {
  const std::string bytes = read_file(test_model_path());
  for (bool mmap : {true, false}) {
    WeightsOptions options;
    options.mmap = mmap;
    auto loaded = LlamaWeights::from_memory(std::as_bytes(std::span(bytes)), "inside", options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ((*loaded)->info().parameters, test_weights()->info().parameters);
    EXPECT_TRUE((*loaded)->info().path.empty());
  }
  const auto cut = LlamaWeights::from_memory(std::as_bytes(std::span(bytes)).first(bytes.size() / 2), "inside");
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("inside"), std::string::npos);
}

TEST(LlamaWeights, LoadLlamaGivesAllParts) {
  auto loaded = load_llama(test_model_path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->tokenizer->vocabulary(), loaded->info.vocabulary);
  auto model = loaded->make({.slots = 2, .cells = 512, .rows_max = 64, .threads = 1});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->shape().vocabulary, loaded->info.vocabulary);
}

}  // namespace
}  // namespace chasqui
