// Sessions that are removed leave at once, and another thread frees them.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

class SessionFreeingTest : public testing::Test {
 protected:
  static SessionLimits limits() {
    SessionLimits limits;
    limits.tokens = 20;
    return limits;
  }

  SessionFreeingTest() {
    table_.set_free_later([this](std::shared_ptr<const void> thing) { handed_over_.push_back(std::move(thing)); });
  }

  SessionId create() {
    const auto chat = std::make_shared<const ChatHistory>(with_messages({}, std::vector<ChatMessage>(3)));
    SessionSettings settings;
    settings.ttl = seconds(10);
    chats_.push_back(chat);
    return (*table_.create({1, 0}, settings, {{1, 2}, chat}, TimePoint()))->id;
  }
  // Histories that are not freed.
  std::size_t left() const {
    std::size_t left = 0;
    for (const auto& chat : chats_) left += chat.expired() ? 0 : 1;
    return left;
  }

  const SimTokenizer tokenizer_;
  SessionTable table_{limits(), tokenizer_};
  std::vector<std::weak_ptr<const ChatHistory>> chats_;
  std::vector<std::shared_ptr<const void>> handed_over_;
};

TEST_F(SessionFreeingTest, ThoseThatExpireTogetherAreHandedOverWhole) {
  std::vector<SessionId> ids;
  for (int i = 0; i < 500; ++i) ids.push_back(create());
  table_.expire(TimePoint() + seconds(10));
  EXPECT_EQ(table_.size(), 0u);
  for (const SessionId& id : ids) EXPECT_FALSE(table_.find(1, id));
  EXPECT_TRUE(table_.consistent());
  EXPECT_EQ(handed_over_.size(), 500u);
  EXPECT_EQ(left(), 500u) << "nothing is freed on the thread of the table";
  handed_over_.clear();
  EXPECT_EQ(left(), 0u);
}

TEST_F(SessionFreeingTest, OneThatEndsIsHandedOverToo) {
  const SessionId id = create();
  ASSERT_TRUE(table_.end(1, id));
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_EQ(handed_over_.size(), 1u);
  EXPECT_EQ(left(), 1u);
}

}  // namespace
}  // namespace chasqui
