// What a table of sessions reports to the session store, and what it takes back.
#include "engine/session_journal.h"

#include <map>

#include <gtest/gtest.h>

#include "engine/session_table.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

constexpr Token kJournalEnd = SimTokenizer::kImEnd;

class FakeJournal final : public SessionJournal {
 public:
  void changed(const Session& session) override {
    said.push_back("+" + session.id.text);
    tokens[session.id.text] = session.tokens;
  }
  void removed(const SessionId& id) override {
    said.push_back("-" + id.text);
    tokens.erase(id.text);
  }

  std::vector<std::string> said;
  std::map<std::string, std::vector<Token>> tokens;
};

class SessionJournalTest : public testing::Test {
 protected:
  static SessionLimits limits() {
    SessionLimits limits;
    limits.tokens = 20;
    limits.sessions = 5;
    return limits;
  }
  ~SessionJournalTest() override { EXPECT_TRUE(table_.consistent()); }

  SessionId create(std::vector<Token> tokens) {
    SessionSettings settings;
    settings.ttl = seconds(100);
    auto made = table_.create({1, 0}, settings, {std::move(tokens), nullptr}, now_);
    EXPECT_TRUE(made);
    return (*made)->id;
  }
  static ErrorCode refusal(const Result<void>& result) { return result ? ErrorCode::internal : result.error().code; }
  void begin(const SessionId& id, std::uint64_t request, SessionDelta before = {}) {
    auto use = table_.take(1, id, now_);
    ASSERT_TRUE(use);
    use->begin(RequestId{request}, std::move(before));
  }
  void finish(std::uint64_t request, std::vector<Token> generated) {
    Event event;
    event.request = RequestId{request};
    event.kind = Event::Kind::finished;
    event.generated = std::move(generated);
    table_.finished(event, now_);
  }

  const SimTokenizer tokenizer_;
  SessionTable table_{limits(), tokenizer_};
  TimePoint now_{};
};

TEST_F(SessionJournalTest, TheJournalIsToldOfEveryChange) {
  FakeJournal journal;
  table_.set_journal(&journal);
  const SessionId id = create({1, 2});
  auto use = table_.take(1, id, now_);
  ASSERT_TRUE(use && use->append({{3}, nullptr}, now_));
  EXPECT_EQ(journal.tokens[id.text], (std::vector<Token>{1, 2, 3}));
  begin(id, 7, {{4}, nullptr});
  EXPECT_EQ(journal.said.size(), 2u) << "what is not yet said is not yet history";
  const auto fork = table_.fork({1, 0}, id, 0, now_);
  ASSERT_TRUE(fork);
  EXPECT_EQ(journal.tokens[(*fork)->id.text], (std::vector<Token>{1, 2, 3}));
  finish(7, {100, kJournalEnd});
  EXPECT_EQ(journal.tokens[id.text], (std::vector<Token>{1, 2, 3, 4, 100, kJournalEnd}));
  begin(id, 8);
  finish(8, {});
  EXPECT_EQ(journal.said.size(), 4u) << "nothing was generated";
  begin(id, 9);
  ASSERT_TRUE(table_.end(1, id));
  EXPECT_EQ(journal.said.back(), "-" + id.text) << "at once";
  finish(9, {100});
  EXPECT_EQ(journal.said.back(), "-" + id.text) << "and then nothing more";
  table_.expire(now_ + seconds(1000));
  EXPECT_TRUE(journal.tokens.empty());
  table_.set_journal(nullptr);
}

TEST_F(SessionJournalTest, BringsBackWithinItsLimits) {
  const auto image = [](const std::string& id, std::size_t tokens) {
    SessionImage out;
    out.id.text = id;
    out.settings.ttl = seconds(100);
    out.tokens.resize(tokens);
    return out;
  };
  now_ += seconds(1000);
  ASSERT_TRUE(table_.bring_back({1, 0}, image("sess_a", 3), now_ - seconds(60)));
  EXPECT_EQ(refusal(table_.bring_back({1, 0}, image("sess_a", 3), now_)), ErrorCode::conflict);
  EXPECT_EQ(refusal(table_.bring_back({1, 0}, image("sess_b", 22), now_)), ErrorCode::context_too_long);
  for (const char* id : {"sess_c", "sess_d", "sess_e", "sess_f"}) {
    ASSERT_TRUE(table_.bring_back({2, 0}, image(id, 1), now_));
  }
  EXPECT_EQ(refusal(table_.bring_back({1, 0}, image("sess_g", 1), now_)), ErrorCode::overloaded);
  EXPECT_EQ((*table_.find(1, {"sess_a"}))->tokens.size(), 3u);
  EXPECT_FALSE(table_.find(1, {"sess_c"}));
  EXPECT_EQ(table_.metrics().created.value(), 0u);
  table_.expire(now_ + seconds(39));
  EXPECT_TRUE(table_.find(1, {"sess_a"}));
  table_.expire(now_ + seconds(40));
  EXPECT_FALSE(table_.find(1, {"sess_a"})) << "the time while no server ran counts";
}

}  // namespace
}  // namespace chasqui
