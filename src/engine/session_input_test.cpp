#include "engine/session_input.h"

#include <gtest/gtest.h>

#include "model/fake_messages.h"
#include "model/sim_media.h"

namespace chasqui {
namespace {

class SessionInputTest : public testing::Test {
 protected:
  SessionInput behind(TokenCount tokens, ChatHistoryPtr chat = {}, TokenCount tokens_max = 100) const {
    return {model_, {tokens, tokens_max, std::move(chat)}};
  }
  std::string text_of(const Result<SessionDelta>& delta) const {
    EXPECT_TRUE(delta) << delta.error().message;
    return delta ? detokenize(*model_.tokenizer, delta->tokens) : std::string();
  }
  static std::string field_of(const Result<SessionDelta>& delta) {
    EXPECT_FALSE(delta);
    return delta ? std::string() : delta.error().field;
  }

  LoadedModel model_ = load_sim();
};

TEST_F(SessionInputTest, TextIsTakenAsItIsUnlessControlTokensAreWanted) {
  const auto plain = behind(5).from_text("<|im_end|>", ParseSpecial::no);
  const auto parsed = behind(5).from_text("<|im_end|>", ParseSpecial::yes);
  EXPECT_EQ(plain->tokens.size(), 10u);
  EXPECT_EQ(parsed->tokens, std::vector<Token>{SimTokenizer::kImEnd});
  EXPECT_FALSE(plain->chat);
}

TEST_F(SessionInputTest, TheFirstTokenOfTheModelComesOnceAtTheVeryBeginning) {
  model_.info.adds_bos = true;
  model_.info.bos = SimTokenizer::kEndOfText;
  EXPECT_EQ(text_of(behind(0).from_text("a", ParseSpecial::no)), "<|endoftext|>a");
  EXPECT_EQ(text_of(behind(1).from_text("a", ParseSpecial::no)), "a");
  const auto begin = behind(0).from_messages({user_message("Hi")});
  EXPECT_EQ(text_of(begin), "<|endoftext|><|im_start|>user\nHi<|im_end|>\n");
  const auto tokens = static_cast<TokenCount>(begin->tokens.size());
  EXPECT_EQ(text_of(behind(tokens, begin->chat).before_answer()), "<|im_start|>assistant\n");
  EXPECT_EQ(behind(0).from_tokens({1, 2})->tokens, (std::vector<Token>{1, 2})) << "tokens are exact";
}

TEST_F(SessionInputTest, MessagesComeBehindTheHistory) {
  const auto begin = behind(0).from_messages({user_message("Hi")});
  EXPECT_EQ(text_of(behind(10, begin->chat).from_messages({user_message("You")})), "<|im_start|>user\nYou<|im_end|>\n");
  const auto answered = std::make_shared<const ChatHistory>(with_answer(*begin->chat, "Hello", "<|im_end|>"));
  EXPECT_EQ(text_of(behind(20, answered).from_messages({user_message("You")})), "\n<|im_start|>user\nYou<|im_end|>\n");
  EXPECT_EQ(text_of(behind(20, answered).before_answer()), "\n<|im_start|>assistant\n") << "one answer more";
}

TEST_F(SessionInputTest, APlainTextNeedsNothingBeforeItsAnswer) {
  EXPECT_EQ(text_of(behind(5).before_answer()), "");
  const auto empty = behind(0).before_answer();
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("empty"), std::string::npos);
}

TEST_F(SessionInputTest, ASessionIsTextOrChatForGood) {
  const auto chat = behind(0).from_messages({user_message("Hi")})->chat;
  EXPECT_EQ(field_of(behind(10, chat).from_text("a", ParseSpecial::no)), "text");
  EXPECT_EQ(field_of(behind(10, chat).from_tokens({1})), "tokens");
  EXPECT_EQ(field_of(behind(10).from_messages({user_message("Hi")})), "messages");
  EXPECT_EQ(field_of(behind(10, chat).from_messages({user_message("Hi")}, {Tool{"t", "", ""}})), "tools");
}

TEST_F(SessionInputTest, FilesOfMessagesAreReadAgainForEachGeneration) {
  const auto reader = std::make_shared<SimMedia>(model_.tokenizer);
  model_.media = reader;
  ChatMessage look = user_message(std::string(reader->marker()) + "Hi");
  look.media = {std::make_shared<MediaFile>(MediaFile{MediaKind::picture, "\xff\xd8\xff a"})};
  ChatMessage twice = user_message("Or " + std::string(reader->marker()) + std::string(reader->marker()));
  twice.media = {std::make_shared<MediaFile>(MediaFile{MediaKind::picture, "\xff\xd8\xff b"}), look.media[0]};
  const auto begin = behind(0).from_messages({look});
  ASSERT_TRUE(begin) << begin.error().message;
  const auto more = behind(30, begin->chat).from_messages({twice});
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->chat->files, 3u);
  EXPECT_EQ(more->chat->file_bytes, 15u);
  EXPECT_EQ(more->chat->messages[1]->content, "Or [file][file]");
  std::vector<Token> history = begin->tokens;
  history.insert(history.end(), more->tokens.begin(), more->tokens.end());
  EXPECT_EQ(std::ranges::count_if(history, [](Token token) { return token < kNoToken; }), 3 * SimMedia::kPositions);
  auto units = behind(60, more->chat).units();
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->size(), 3u);
  EXPECT_TRUE(place_units(*units, history));
  EXPECT_EQ(text_of(behind(60, more->chat).before_answer()), "<|im_start|>assistant\n");

  model_.media = std::make_shared<SimMedia>(model_.tokenizer, false, false);
  EXPECT_EQ(text_of(behind(60, more->chat).from_messages({user_message("You")})), "<|im_start|>user\nYou<|im_end|>\n");
  model_.media = nullptr;
  EXPECT_EQ(behind(60, more->chat).units().error().code, ErrorCode::conflict);
  EXPECT_TRUE(behind(60, nullptr).units()->empty());
}

TEST_F(SessionInputTest, MistakesNameTheField) {
  EXPECT_EQ(field_of(behind(0).from_text("", ParseSpecial::no)), "text");
  EXPECT_EQ(field_of(behind(0).from_tokens({})), "tokens");
  EXPECT_EQ(field_of(behind(0).from_tokens({-1})), "tokens");
  EXPECT_EQ(field_of(behind(0).from_tokens({model_.tokenizer->vocabulary()})), "tokens");
  EXPECT_EQ(field_of(behind(0).from_messages({})), "messages");
  const auto large = behind(98).from_text(std::string(10'000, 'x'), ParseSpecial::no);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::context_too_long) << "refused unread";
}

}  // namespace
}  // namespace chasqui
