#include "api/openai/response_store.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

StoredResponse response(std::string id, std::uint32_t tenant, std::size_t bytes = 0) {
  StoredResponse made;
  made.id = std::move(id);
  made.tenant = tenant;
  made.body = std::make_shared<const std::string>(bytes, 'x');
  return made;
}

const TimePoint kStart = TimePoint() + seconds(1000);

TEST(ResponseStore, IsSeenByItsTenantOnly) {
  ResponseStore store;
  store.put(response("a", 1), kStart);
  EXPECT_NE(store.find({1, "a"}, kStart), nullptr);
  EXPECT_EQ(store.find({2, "a"}, kStart), nullptr);
  EXPECT_FALSE(store.erase({2, "a"}, kStart));
  EXPECT_TRUE(store.erase({1, "a"}, kStart));
  EXPECT_EQ(store.find({1, "a"}, kStart), nullptr);
  EXPECT_EQ(store.bytes(1), 0u);
}

TEST(ResponseStore, ForgetsWhatIsOlderThanItsTime) {
  ResponseStore store({.ttl = seconds(10)});
  store.put(response("a", 1), kStart);
  store.put(response("b", 1), kStart + seconds(5));
  store.put(response("a", 1, 5), kStart + seconds(9));  // its end; it lives from when it began
  EXPECT_NE(store.find({1, "a"}, kStart + seconds(9)), nullptr);
  EXPECT_EQ(store.find({1, "a"}, kStart + seconds(10)), nullptr);
  EXPECT_NE(store.find({1, "b"}, kStart + seconds(10)), nullptr);
}

TEST(ResponseStore, ATenantWithTooMuchLosesItsOwnOldest) {
  ResponseStore store({.tenant_entries = 2, .tenant_bytes = 10000, .ttl = seconds(10)});
  store.put(response("other", 2), kStart);
  for (const char* id : {"a", "b", "c"}) store.put(response(id, 1), kStart);
  EXPECT_EQ(store.find({1, "a"}, kStart), nullptr);
  EXPECT_NE(store.find({1, "c"}, kStart), nullptr);
  store.put(response("c", 1, 9200), kStart);  // grows when it ends
  EXPECT_EQ(store.find({1, "b"}, kStart), nullptr);
  EXPECT_NE(store.find({1, "c"}, kStart), nullptr);
  EXPECT_NE(store.find({2, "other"}, kStart), nullptr);
  EXPECT_LE(store.bytes(1), 10000u);
}

TEST(ResponseStore, CountsAllThatAMessageHolds) {
  ChatMessage call;
  call.tool_calls.push_back({std::string(30, 'n'), "{}", std::string(1000, 'c')});
  ChatMessage result;
  result.tool_call_id = std::string(1000, 'c');
  result.parts = {std::string(1000, 'p')};
  StoredResponse made = response("a", 1);
  made.conversation = std::make_shared<std::vector<std::shared_ptr<const ChatMessage>>>(
      std::vector{std::make_shared<const ChatMessage>(call), std::make_shared<const ChatMessage>(result)});
  ResponseStore store;
  store.put(std::move(made), kStart);
  EXPECT_GT(store.bytes(1), 3500u);
}

TEST(ResponseStore, CountsTheInputOfWhatRunsAndItsConversationWhenItHasEnded) {
  ChatMessage message;
  message.content = std::string(1000, 'm');
  StoredResponse made = response("a", 1);
  made.input = std::make_shared<const ResponseInput>(ResponseInput{{std::string(1000, 'i')}, {std::string(100, 'n')}});
  made.conversation = std::make_shared<std::vector<std::shared_ptr<const ChatMessage>>>(
      std::vector{std::make_shared<const ChatMessage>(message)});
  made.running = RequestId{1};
  ResponseStore store;
  store.put(made, kStart);
  EXPECT_GE(store.bytes(1), 1100u);
  EXPECT_LT(store.bytes(1), 2000u);
  made.running.reset();
  store.put(std::move(made), kStart);
  EXPECT_GT(store.bytes(1), 2100u);
}

TEST(ResponseStore, HasALimitForAll) {
  ResponseStore store({.entries = 3, .ttl = seconds(10)});
  for (std::uint32_t tenant = 0; tenant < 10; ++tenant) store.put(response(std::to_string(tenant), tenant), kStart);
  EXPECT_EQ(store.size(), 3u);
  EXPECT_NE(store.find({9, "9"}, kStart), nullptr);
}

}  // namespace
}  // namespace chasqui
