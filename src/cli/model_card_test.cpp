#include "cli/model_card.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

TEST(ModelCard, HasWhatTheServerTells) {
  const auto card = model_card(R"({
    "details":{"family":"qwen3","parameter_size":"4B","quantization_level":"Q4_0"},
    "model_info":{"general.architecture":"qwen3","general.basename":"Qwen3 4B",
    "qwen3.context_length":4096,"tokenizer.ggml.model":"gpt2",
    "x.list":[1]},
    "capabilities":["completion","tools"]})");
  ASSERT_TRUE(card);
  EXPECT_EQ(*card,
            "name            Qwen3 4B\n"
            "architecture    qwen3\n"
            "parameters      4B\n"
            "format          Q4_0\n"
            "context length  4096\n"
            "tokenizer       gpt2\n"
            "capabilities    completion, tools\n");
}

TEST(ModelCard, ControlsNoTerminal) {
  const auto card = model_card(R"({"details":{"family":"\u001b[2J"},"capabilities":"none"})");
  ASSERT_TRUE(card);
  EXPECT_EQ(card->find('\x1b'), std::string::npos);
}

TEST(ModelCard, RefusesWhatIsNone) {
  for (const char* body : {"", "[]", "{}", R"({"details":1})", R"({"error":"x"})"})
    EXPECT_FALSE(model_card(body)) << body;
}

}  // namespace
}  // namespace chasqui::cli
