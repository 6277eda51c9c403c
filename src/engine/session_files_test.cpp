// Pictures and sounds that sessions keep: what of them is counted, and what is refused.
#include <gtest/gtest.h>

#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

class SessionFilesTest : public testing::Test {
 protected:
  static SessionLimits limits() {
    SessionLimits limits;
    limits.tokens = 100;
    limits.files = 3;
    limits.file_bytes = 50;
    limits.tenant_file_bytes = 80;
    limits.all_file_bytes = 120;
    limits.decoded_bytes = 1000;
    return limits;
  }
  ~SessionFilesTest() override { EXPECT_TRUE(table_.consistent()); }

  // The history and a message with files of these sizes.
  static SessionDelta with_files(const std::vector<std::size_t>& sizes, const ChatHistoryPtr& history = {}) {
    ChatMessage message;
    message.role = "user";
    for (const std::size_t size : sizes) {
      message.media.push_back(std::make_shared<MediaFile>(MediaFile{MediaKind::sound, std::string(size, 'x')}));
    }
    const ChatHistory before = history ? *history : ChatHistory{};
    return {{1, 2}, std::make_shared<const ChatHistory>(with_messages(before, {message}))};
  }
  Result<const Session*> create(std::uint32_t tenant, const std::vector<std::size_t>& sizes) {
    SessionSettings settings;
    settings.ttl = seconds(100);
    return table_.create({tenant, 0}, settings, with_files(sizes), {});
  }
  static ErrorCode refusal(const auto& result) { return result ? ErrorCode::internal : result.error().code; }
  std::int64_t bytes() const { return table_.metrics().file_bytes.value(); }

  SimTokenizer tokenizer_;
  SessionTable table_{limits(), tokenizer_};
};

TEST_F(SessionFilesTest, OfOneSessionAreBounded) {
  EXPECT_EQ(refusal(create(0, {51})), ErrorCode::invalid_request);
  EXPECT_EQ(refusal(create(0, {1, 1, 1, 1})), ErrorCode::invalid_request);
  const auto made = create(0, {20, 20});
  ASSERT_TRUE(made);
  const SessionId id = (*made)->id;
  EXPECT_EQ(bytes(), 40);
  {
    auto use = table_.take(0, id, {});
    EXPECT_EQ(refusal(use->append(with_files({11}, use->session().chat), {})), ErrorCode::invalid_request);
  }
  auto use = table_.take(0, id, {});
  const SessionMark before = mark_of(use->session());
  EXPECT_TRUE(use->append(with_files({10}, use->session().chat), {}));
  EXPECT_EQ(bytes(), 50);
  table_.take_back(before);
  EXPECT_EQ(bytes(), 40);
  EXPECT_TRUE(table_.end(0, id));
  EXPECT_EQ(bytes(), 0);
}

TEST_F(SessionFilesTest, OfOneSessionCanBeDecodedTogether) {
  SessionDelta delta = with_files({10});
  ChatHistory large = *delta.chat;
  large.decoded_bytes = 1001;
  delta.chat = std::make_shared<const ChatHistory>(large);
  SessionSettings settings;
  settings.ttl = seconds(100);
  const auto made = table_.create({}, settings, delta, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "messages");
  EXPECT_NE(made.error().message.find("333 pixels"), std::string::npos);
}

TEST_F(SessionFilesTest, OfATenantAreBoundedAndThoseOfAll) {
  ASSERT_TRUE(create(1, {50}));
  ASSERT_TRUE(create(1, {30}));
  EXPECT_EQ(refusal(create(1, {1})), ErrorCode::quota_exceeded);
  EXPECT_TRUE(create(1, {})) << "texts are none";
  const auto other = create(2, {40});
  ASSERT_TRUE(other) << "each tenant has its own";
  EXPECT_EQ(refusal(create(3, {1})), ErrorCode::overloaded);
  EXPECT_EQ(refusal(table_.fork({2, 0}, (*other)->id, 0, {})), ErrorCode::overloaded) << "a fork counts again";
  table_.expire(TimePoint(seconds(200)));
  EXPECT_EQ(bytes(), 0);
  EXPECT_TRUE(create(1, {50}));
}

TEST_F(SessionFilesTest, ThoseWithoutKeysAreNoTenant) {
  EXPECT_TRUE(create(0, {50}));
  EXPECT_TRUE(create(0, {50}));
  const auto last = create(0, {10});
  ASSERT_TRUE(last);
  ASSERT_TRUE(table_.fork({}, (*last)->id, 0, {}));
  EXPECT_EQ(bytes(), 120);
  EXPECT_EQ(refusal(create(0, {1})), ErrorCode::overloaded);
}

}  // namespace
}  // namespace chasqui
