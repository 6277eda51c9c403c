#include "model/forced_voice.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/sim_model.h"

namespace chasqui {
namespace {

TEST(ForcedVoice, ReadsTheLastTextInHexWhateverIsAroundIt) {
  EXPECT_EQ(forced_text("<user>say:00; no, say:48690a; </user>"), "Hi\n");
  EXPECT_EQ(forced_text("say:3c7c|"), "<|");
  EXPECT_EQ(forced_text("say: x"), "");
  EXPECT_EQ(forced_text("nothing"), "");
}

TEST(ForcedVoice, SaysIt) {
  const auto tokenizer = std::make_shared<const SimTokenizer>();
  SimModel model(tokenizer->vocabulary(), std::make_shared<ForcedVoice>(tokenizer),
                 {.slots = 1, .cells = 256, .rows_max = 64}, {});
  std::vector<Token> tokens = tokenizer->tokenize("x say:4c696d61; y", AddSpecial::no, ParseSpecial::no);
  TokenCount position = 0;
  std::string said;
  for (int turns = 0; turns < 10; ++turns) {
    Batch batch;
    batch.kind = turns == 0 ? Batch::Kind::prefill : Batch::Kind::decode;
    for (const Token token : tokens) batch.rows.push_back({token, position++, SlotId{0}, false});
    batch.rows.back().output = true;
    ASSERT_EQ(model.decode(batch), DecodeStatus::ok);
    const auto row = model.logits(static_cast<std::int32_t>(batch.rows.size()) - 1);
    tokens = {static_cast<Token>(std::ranges::max_element(row) - row.begin())};
    if (tokenizer->is_end_of_generation(tokens[0])) break;
    said += tokenizer->piece(tokens[0]);
  }
  EXPECT_EQ(said, "Lima");
}

TEST(ForcedVoice, HangsBeforeItsFirstTokenAsItsPromptSays) {
  const auto tokenizer = std::make_shared<const SimTokenizer>();
  const ForcedVoice voice(tokenizer);
  std::vector<Token> tokens = tokenizer->tokenize("x hang: 7 y", AddSpecial::no, ParseSpecial::no);
  const std::size_t prompt = tokens.size();
  EXPECT_EQ(voice.hang({tokens, 0, prompt}), seconds(7));
  tokens.push_back(tokens.front());
  EXPECT_EQ(voice.hang({tokens, 0, prompt}), Duration::zero());
  tokens = tokenizer->tokenize("x", AddSpecial::no, ParseSpecial::no);
  EXPECT_EQ(voice.hang({tokens, 0, tokens.size()}), Duration::zero());
}

}  // namespace
}  // namespace chasqui
