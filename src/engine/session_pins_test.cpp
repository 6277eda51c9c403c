// A session belongs to one worker for life, and so do its forks: the pin that the table gives them, and how it
// is kept where there are two workers.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "engine/fake_workers.h"
#include "engine/session_table.h"

namespace chasqui {
namespace {

class SessionPinsTest : public testing::Test {
 protected:
  static constexpr std::size_t kSessions = 200;

  explicit SessionPinsTest(ClientConfig config = workers(2)) : client_(ready(std::move(config))) {
    table_.on_unpinned([this](std::uint64_t pin) {
      EXPECT_TRUE(unpinned_.insert(pin).second) << "given up twice";
      client_.engine.unpin(pin);
    });
  }
  ~SessionPinsTest() override { EXPECT_TRUE(table_.consistent()); }

  static ClientConfig ready(ClientConfig config) {
    config.engine.pins_max = kSessions;
    return config;
  }
  static SessionLimits limits() {
    SessionLimits limits;
    limits.tokens = 255;
    limits.sessions = kSessions;
    return limits;
  }

  SessionId create(std::string_view text = "once", Duration ttl = seconds(100)) {
    SessionSettings settings;
    settings.ttl = ttl;
    auto tokens = sim_tokenizer()->tokenize(text, AddSpecial::no, ParseSpecial::no);
    const auto made = table_.create({}, settings, {std::move(tokens), nullptr}, now_);
    EXPECT_TRUE(made);
    return (*made)->id;
  }
  SessionId fork(const SessionId& id) {
    const auto made = table_.fork({}, id, 0, now_);
    EXPECT_TRUE(made);
    return (*made)->id;
  }
  const Session& at(const SessionId& id) const { return **table_.find(0, id); }
  void end(const SessionId& id) { EXPECT_TRUE(table_.end(0, id)); }

  RequestPtr begin(const SessionId& id, std::int64_t tokens = 3) {
    auto use = table_.take(0, id, now_);
    EXPECT_TRUE(use);
    const RequestPtr request = client_.submit("", tokens, [&](RequestDraft& draft) {
      draft.prompt = use->session().tokens;
      draft.pin = use->session().pin;
      draft.keep_tokens = true;
      draft.sampling.ignore_eos = true;
    });
    use->begin(request->id, {});
    return request;
  }
  void read_to_end(const RequestPtr& request) {
    client_.read_to_end(request);
    table_.finished(client_.of(request).last, now_);
  }
  // The worker that generates in it now.
  std::size_t worker_of(const SessionId& id) {
    const std::uint64_t before[] = {ended(client_, 0), ended(client_, 1)};
    read_to_end(begin(id));
    EXPECT_EQ(ended(client_, 0) + ended(client_, 1), before[0] + before[1] + 1);
    return ended(client_, 0) > before[0] ? 0 : 1;
  }
  // What the dispatcher keeps after it has done all that was asked of it.
  std::int64_t pins() {
    read_to_end(begin(fence_));
    return client_.engine.dispatch_metrics().pins.value() - 1;
  }

  FakeClient client_;
  SessionTable table_{limits(), *sim_tokenizer()};
  std::set<std::uint64_t> unpinned_;
  TimePoint now_{};
  const SessionId fence_ = create("fence", seconds(10'000));
};

TEST_F(SessionPinsTest, AllGenerationsOfASessionAreOfOneWorkerAndSessionsAreSpread) {
  std::map<std::string, std::size_t> homes;
  std::vector<SessionId> ids;
  std::size_t of_worker[2] = {0, 0};
  for (int i = 0; i < 20; ++i) {
    ids.push_back(create("session " + std::to_string(i)));
    homes[ids.back().text] = worker_of(ids.back());
    ++of_worker[homes[ids.back().text]];
  }
  EXPECT_EQ(of_worker[0], 10u);
  EXPECT_EQ(of_worker[1], 10u);
  for (int turn = 0; turn < 5; ++turn) {
    for (const SessionId& id : ids) EXPECT_EQ(worker_of(id), homes[id.text]);
  }
}

TEST_F(SessionPinsTest, ForksStayWithTheirParent) {
  for (int i = 0; i < 4; ++i) {
    const SessionId parent = create("parent " + std::to_string(i));
    const SessionId before = fork(parent);  // before the first generation
    const std::size_t home = worker_of(parent);
    EXPECT_EQ(worker_of(before), home);
    const SessionId child = fork(parent);
    const SessionId grandchild = fork(child);
    EXPECT_EQ(worker_of(grandchild), home);
    EXPECT_EQ(worker_of(child), home);
    end(parent);
    EXPECT_EQ(worker_of(child), home) << "a fork outlives its parent there";
  }
}

TEST_F(SessionPinsTest, AForkSharesThePinWhichIsGivenUpWithTheLastOfThem) {
  const SessionId parent = create();
  const SessionId child = fork(parent);
  const SessionId other = create();
  const std::uint64_t pin = at(parent).pin;
  EXPECT_NE(pin, 0u);
  EXPECT_EQ(at(child).pin, pin);
  EXPECT_NE(at(other).pin, pin);
  end(parent);
  EXPECT_TRUE(unpinned_.empty());
  end(child);
  EXPECT_EQ(unpinned_, std::set<std::uint64_t>{pin});
}

TEST_F(SessionPinsTest, IsGivenUpWhenASessionExpires) {
  worker_of(create("short", seconds(10)));
  const SessionId longer = create("long", seconds(20));
  worker_of(longer);
  EXPECT_EQ(pins(), 2);
  now_ += seconds(10);
  table_.expire(now_);
  EXPECT_EQ(pins(), 1);
  now_ += seconds(10);
  table_.expire(now_);
  EXPECT_EQ(pins(), 0);
}

TEST_F(SessionPinsTest, IsGivenUpOnlyWhenTheLastGenerationIsOver) {
  const SessionId id = create();
  const std::uint64_t pin = at(id).pin;
  const RequestPtr request = begin(id, 20);
  end(id);
  client_.engine.cancel(request->id);
  EXPECT_FALSE(unpinned_.contains(pin));
  read_to_end(request);
  EXPECT_TRUE(unpinned_.contains(pin));
  EXPECT_EQ(pins(), 0);
}

TEST_F(SessionPinsTest, SessionsThatComeAndGoNeverRunOutOfPins) {
  for (std::size_t round = 0; round < 3; ++round) {
    std::vector<SessionId> ids;
    while (table_.size() < kSessions) ids.push_back(create());
    for (const SessionId& id : ids) read_to_end(begin(id, 1));
    EXPECT_EQ(pins(), static_cast<std::int64_t>(ids.size()));
    for (const SessionId& id : ids) end(id);
  }
  EXPECT_EQ(client_.engine.dispatch_metrics().refused.value(), 0u);
  EXPECT_EQ(pins(), 0);
}

// A session that has ended keeps no pin, in whichever order sessions come and go.
TEST_F(SessionPinsTest, EveryFamilyGivesItsPinUpExactlyOnce) {
  std::mt19937 random(7);
  std::vector<SessionId> ids;
  std::map<SessionId, RequestPtr> running;
  std::set<std::uint64_t> given;
  const auto below = [&random](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const auto finish = [&](const SessionId& id) {
    read_to_end(running.at(id));
    running.erase(id);
  };
  for (int i = 0; i < 600; ++i) {
    const std::size_t move = ids.empty() ? 0 : below(5);
    const std::size_t place = ids.empty() ? 0 : below(ids.size());
    if (move == 0 || move == 1) {
      if (table_.size() == kSessions) continue;
      ids.push_back(move == 0 || ids.empty() ? create() : fork(ids[place]));
      given.insert(at(ids.back()).pin);
    } else if (move == 2) {
      if (!running.contains(ids[place])) running.emplace(ids[place], begin(ids[place], 2));
    } else if (move == 3) {
      if (running.contains(ids[place])) finish(ids[place]);
    } else {
      end(ids[place]);
      if (running.contains(ids[place])) finish(ids[place]);
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place));
    }
    ASSERT_TRUE(table_.consistent()) << i;
  }
  while (!running.empty()) finish(running.begin()->first);
  for (const SessionId& id : ids) end(id);
  EXPECT_EQ(unpinned_, given);
  EXPECT_EQ(pins(), 0);
}

class FailingSessionPinsTest : public SessionPinsTest {
 protected:
  static ClientConfig failing() {
    ClientConfig config = workers(2);
    config.fail_step = 6;
    return config;
  }
  FailingSessionPinsTest() : SessionPinsTest(failing()) {}
};

TEST_F(FailingSessionPinsTest, ASessionGoesOnInTheWorkerThatFailed) {
  const SessionId ids[] = {create("one"), create("two")};
  const std::size_t homes[] = {worker_of(ids[0]), worker_of(ids[1])};
  ASSERT_NE(homes[0], homes[1]);
  const SessionId& fails = homes[0] == 0 ? ids[0] : ids[1];
  const std::vector<Token> before = at(fails).tokens;
  const RequestPtr request = begin(fails, 20);
  read_to_end(request);
  ASSERT_EQ(client_.of(request).last.reason, FinishReason::error);
  const std::vector<Token>& after = at(fails).tokens;
  ASSERT_GT(client_.of(request).tokens, 0);
  EXPECT_EQ(after.size(), before.size() + static_cast<std::size_t>(client_.of(request).tokens));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin())) << "its history is what was said until then";
  EXPECT_EQ(worker_of(fails), 0u);
  const RequestPtr next = begin(fails, 10);
  read_to_end(next);
  expect_as_alone(client_, next);
}

}  // namespace
}  // namespace chasqui
