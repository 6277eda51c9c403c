// Sessions of a model that another one replaces.
#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

constexpr Token kVocabularyEnd = SimTokenizer::kImEnd;
constexpr TimePoint kVocabularyStart = TimePoint() + seconds(1000);

SessionLimits limits() {
  SessionLimits limits;
  limits.tokens = 20;
  return limits;
}

SessionId create(SessionTable& table) {
  SessionSettings settings;
  settings.ttl = seconds(100);
  return (*table.create({1, 0}, settings, {{1, 2, 3}, nullptr}, kVocabularyStart))->id;
}

TEST(SessionVocabulary, SessionsGoOnWithAnotherModelOfTheirVocabularyAlone) {
  const SimTokenizer tokenizer;
  const SimTokenizer next;
  SessionTable table(limits(), tokenizer);
  const Checksum own{};
  Checksum other{};
  other[0] = std::byte{1};
  const SessionId id = create(table);
  auto use = table.take(1, id, kVocabularyStart);
  ASSERT_TRUE(use);
  use->begin(RequestId{7}, {});
  table.use_model(limits(), next, other);
  Event event;
  event.request = RequestId{7};
  event.kind = Event::Kind::finished;
  event.generated = {100, kVocabularyEnd};
  table.finished(event, kVocabularyStart);
  EXPECT_EQ((*table.find(1, id))->tokens, (std::vector<Token>{1, 2, 3, 100, kVocabularyEnd}))
      << "what ran ends as it began";
  EXPECT_EQ(table.take(1, id, kVocabularyStart).error().code, ErrorCode::conflict);
  EXPECT_EQ(table.fork({1, 0}, id, 0, kVocabularyStart).error().code, ErrorCode::conflict);
  const SessionId fresh = create(table);
  EXPECT_TRUE(table.take(1, fresh, kVocabularyStart));
  table.use_model(limits(), tokenizer, own);
  EXPECT_TRUE(table.take(1, id, kVocabularyStart));
  EXPECT_EQ(table.take(1, fresh, kVocabularyStart).error().code, ErrorCode::conflict);
  EXPECT_TRUE(table.end(1, fresh)) << "it can still go";
  EXPECT_TRUE(table.consistent());
}

}  // namespace
}  // namespace chasqui
