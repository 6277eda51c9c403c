#include "model/llama_control_vector.h"

#include <filesystem>
#include <fstream>
#include <memory>

#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "model/llama_embedder.h"
#include "model/llama_model.h"
#include "model/llama_tokenizer.h"
#include "model/test_options.h"
#include "model/test_rows.h"
#include "model/test_weights.h"
#include "model/weights_identity.h"

namespace chasqui {
namespace {

// A file with a direction for each of some layers, which is removed again.
class Directions {
 public:
  Directions(std::int32_t width, const std::vector<int>& layers, float value = 0.5f, const char* name = "direction")
      : path_(testing::TempDir() + "chasqui-directions-" + std::to_string(::getpid()) + "-" + std::to_string(++count_) +
              ".gguf") {
    const std::unique_ptr<ggml_context, void (*)(ggml_context*)> tensors(
        ggml_init({.mem_size = std::size_t{4} << 20, .mem_buffer = nullptr, .no_alloc = false}), ggml_free);
    const std::unique_ptr<gguf_context, void (*)(gguf_context*)> file(gguf_init_empty(), gguf_free);
    for (const int layer : layers) {
      ggml_tensor* tensor = ggml_new_tensor_1d(tensors.get(), GGML_TYPE_F32, width);
      ggml_set_name(tensor, (std::string(name) + "." + std::to_string(layer)).c_str());
      auto* values = static_cast<float*>(tensor->data);
      for (std::int32_t i = 0; i < width; ++i) values[i] = i % 3 == 0 ? value : -value / 2;
      gguf_add_tensor(file.get(), tensor);
    }
    CHECK(gguf_write_to_file(file.get(), path_.c_str(), false));
  }
  ~Directions() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  const std::string path_;
};

std::int32_t width() { return test_weights()->info().embedding_length; }

std::vector<Token> steered_prompt() {
  return LlamaTokenizer(test_weights()).tokenize("The runner waits.", AddSpecial::yes, ParseSpecial::no);
}

Result<std::unique_ptr<LlamaModel>> make_steered(const std::vector<Words>& given, bool draft = false) {
  ModelConfig config{.slots = 1, .cells = 256, .threads = 1};
  config.llama = flags(given);
  config.draft = draft;
  return LlamaModel::make(test_weights(), config);
}

std::vector<float> logits(const std::vector<Words>& given, bool draft = false) {
  auto model = make_steered(given, draft);
  CHECK(model, model ? "" : model.error().message);
  return run(**model, 0, 0, steered_prompt());
}

std::string error_of(const std::vector<Words>& given) {
  const auto model = make_steered(given);
  return model ? "none" : model.error().message;
}

TEST(LlamaControlVector, ChangesWhatTheModelSaysByItsScale) {
  const Directions file(width(), {1, 2});
  const std::vector<float> plain = logits({});
  const std::vector<float> once = logits({{"--control-vector", file.path()}});
  EXPECT_GT(difference(plain, once), kClose);
  EXPECT_EQ(logits({{"--control-vector-scaled", file.path() + ":0"}}), plain);
  EXPECT_EQ(logits({{"--control-vector-scaled", file.path() + ":1"}}), once);
  const Directions half(width(), {1, 2}, 0.25f);
  EXPECT_EQ(logits({{"--control-vector", half.path() + "," + half.path()}}), once) << "several are added";
  EXPECT_EQ(logits({{"--control-vector", file.path()}}, true), plain) << "a draft model has none";
}

TEST(LlamaControlVector, IsForTheLayersOfItsRange) {
  const Directions both(width(), {1, 2});
  const Directions first(width(), {1});
  EXPECT_EQ(logits({{"--control-vector", both.path()}, {"--control-vector-layer-range", "1", "1"}}),
            logits({{"--control-vector", first.path()}}));
  EXPECT_NE(error_of({{"--control-vector", both.path()}, {"--control-vector-layer-range", "500", "501"}})
                .find("--control-vector-layer-range: the model has layers 1 to "),
            std::string::npos);
}

TEST(LlamaControlVector, IsInEmbeddingsToo) {
  const Directions file(width(), {1});
  const auto embed = [](LlamaOptionsPtr options) {
    auto made = LlamaEmbedder::make(test_weights(), {.tokens_max = 64, .llama = std::move(options)});
    CHECK(made, made ? "" : made.error().message);
    const std::vector<std::vector<Token>> inputs = {steered_prompt()};
    return (*made)->embed(inputs, nullptr).value()[0].values;
  };
  EXPECT_GT(difference(embed(nullptr), embed(flags({{"--control-vector", file.path()}}))), kClose);
}

TEST(LlamaControlVector, ThatCannotBeUsedIsAnErrorWithTheNameOfTheFlag) {
  const auto starts = [](const std::string& path, const std::string& why) {
    const std::string message = error_of({{"--control-vector", path}});
    EXPECT_EQ(message.find("--control-vector: " + path), 0u) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  const auto missing = try_flags({{"--control-vector", "/nowhere/v.gguf"}});
  ASSERT_FALSE(missing) << "found before the model is read";
  EXPECT_EQ(missing.error().message, "--control-vector names /nowhere/v.gguf: No such file or directory");
  starts(CHASQUI_SOURCE_DIR "/README.md", "");
  const Directions narrow(width() / 2, {1});
  starts(narrow.path(), "wide");
  const Directions other(width(), {1}, 0.5f, "tensor");
  starts(other.path(), "direction.1");
}

TEST(LlamaControlVector, ChangesTheIdentityOfContexts) {
  const Directions one(width(), {1}, 0.5f);
  const Directions other(width(), {1}, 0.75f);
  const Directions same(width(), {1}, 0.5f);
  const auto identity = [](const std::vector<Words>& given) {
    ModelConfig config;
    config.llama = flags(given);
    return identify_context(config, {});
  };
  EXPECT_NE(identity({{"--control-vector", one.path()}}), identity({}));
  EXPECT_NE(identity({{"--control-vector", one.path()}}), identity({{"--control-vector", other.path()}}));
  EXPECT_EQ(identity({{"--control-vector", one.path()}}), identity({{"--control-vector", same.path()}}));
  EXPECT_NE(identity({{"--control-vector", one.path()}}),
            identity({{"--control-vector", one.path()}, {"--control-vector-layer-range", "1", "1"}}));
}

}  // namespace
}  // namespace chasqui
