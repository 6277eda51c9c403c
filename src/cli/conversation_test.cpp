#include "cli/conversation.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

TEST(Conversation, WhatIsSavedIsLoadedAgain) {
  Conversation said;
  said.set_system("Be \"brief\".\n");
  said.ask("Hi");
  said.answered("Hello é \x01");
  Conversation loaded;
  ASSERT_TRUE(loaded.from_json(said.to_json()).has_value());
  EXPECT_EQ(loaded.system(), "Be \"brief\".\n");
  ASSERT_EQ(loaded.messages().size(), 3u);
  EXPECT_EQ(loaded.messages()[2].content, "Hello é \x01");
  EXPECT_EQ(loaded.messages()[2].role, "assistant");
}

TEST(Conversation, AFileThatIsNoneChangesNothing) {
  Conversation said;
  said.ask("Hi");
  for (const char* bad : {"", "[]", "{}", R"({"messages":3})", R"({"messages":[3]})",
                          R"({"messages":[{"role":"user"}]})", R"({"messages":[{"role":"tool","content":"x"}]})",
                          R"({"messages":[{"role":"user","content":"x"},{"role":"system","content":"late"}]})"}) {
    EXPECT_FALSE(said.from_json(bad).has_value()) << bad;
    EXPECT_EQ(said.size(), 1u) << bad;
  }
}

TEST(Conversation, ChangesOfWhatWasSentAreSeenInTheRevision) {
  Conversation said;
  const auto before = said.revision();
  said.ask("a");
  said.answered("b");
  EXPECT_EQ(said.revision(), before) << "growing is no change";
  said.take_back();
  EXPECT_NE(said.revision(), before);
  const auto then = said.revision();
  ASSERT_TRUE(said.from_json(R"({"messages":[]})").has_value());
  EXPECT_NE(said.revision(), then);
  EXPECT_TRUE(said.empty());
}

}  // namespace
}  // namespace chasqui::cli
