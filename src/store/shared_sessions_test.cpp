#include "store/shared_sessions.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "engine/fake_sessions.h"
#include "store/fake_shared_store.h"

namespace chasqui::store {
namespace {

constexpr std::uint64_t kOwner = 0xfeed'0000'0000'0001;  // of image()
const std::string kId = "sess_A1b2";

std::unique_ptr<SharedSessions> node_of(FakeShared& shared, std::uint32_t number) {
  const std::string name = "node" + std::to_string(number);
  SharedSessionsConfig config{.place = "fake", .root = "", .vocabulary = weights(), .writer = number};
  SharedSessionsParts parts{std::make_unique<FakeLeases>(shared, name), std::make_unique<FakeLeases>(shared, name),
                            std::make_unique<FakeObjectStore>(shared), std::make_unique<FakeObjectStore>(shared)};
  return std::make_unique<SharedSessions>(std::move(config), std::move(parts));
}

SessionChange whole(const SessionImage& image, std::uint64_t lease) {
  return {.id = image.id.text, .image = image, .lease = lease, .owner = kOwner, .made = lease == 1, .ttl = 600};
}

SessionChange with_tokens(const SessionImage& image, std::vector<Token> tokens, std::uint64_t lease) {
  SessionTurn turn{.used = image.used, .kept = image.tokens.size(), .tokens = std::move(tokens)};
  turn.before = turn.chat = image.chat;
  return {.id = image.id.text, .turn = std::move(turn), .lease = lease, .owner = kOwner, .ttl = 600};
}

std::optional<Error> write_one(SharedSessions& node, const SessionChange& change) {
  return node.write({change}).front();
}

Result<TakenSession> take_it(SharedSessions& node, const std::string& id = kId, std::uint64_t owner = kOwner) {
  const auto claim = node.claim(id, owner);
  if (!claim) return claim.error();
  if (claim->kind == SessionClaim::Kind::none) return Error{ErrorCode::not_found, "none", ""};
  return node.take(id, owner, *claim, weights(), kFileLimits, kNow);
}

TEST(SharedSessions, AnotherNodeGoesOnWithWhatWasAcknowledged) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  SessionImage session = image();
  ASSERT_FALSE(write_one(*a, whole(session, 1)));
  for (Token token = 1; token < 5; ++token) {
    ASSERT_FALSE(write_one(*a, with_tokens(session, {token, 9}, 1)));
    session.tokens.insert(session.tokens.end(), {token, 9});
  }
  const auto taken = take_it(*b);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(same_image(taken->image, session));
  EXPECT_EQ(taken->lease, 2U);

  const auto late = write_one(*a, with_tokens(session, {7}, 1));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->code, ErrorCode::conflict);
  session.tokens.push_back(8);
  ASSERT_FALSE(write_one(*b, whole(session, 2)));
  EXPECT_EQ(take_it(*a)->image.tokens, session.tokens) << "what the first node wrote late changes nothing";
  ASSERT_FALSE(write_one(*a, whole(session, 3)));
  EXPECT_EQ(shared.objects.size(), 1U) << "a whole session makes the objects before it useless";
}

TEST(SharedSessions, ATurnNeedsSomethingToFollow) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_TRUE(take_it(*b));
  EXPECT_EQ(write_one(*b, with_tokens(image(), {1}, 2))->code, ErrorCode::not_found);
  EXPECT_FALSE(write_one(*b, whole(image(), 2)));
}

TEST(SharedSessions, OtherTenantsGetNothing) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  EXPECT_EQ(take_it(*b, kId, 77).error().code, ErrorCode::not_found);
  shared.leases.clear();
  EXPECT_EQ(take_it(*b, kId, 77).error().code, ErrorCode::not_found);
  EXPECT_FALSE(write_one(*a, with_tokens(image(), {1}, 1))) << "nor was it taken away";
}

TEST(SharedSessions, WhatHasEndedIsGoneEverywhere) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_FALSE(write_one(*a, with_tokens(image(), {1}, 1)));
  ASSERT_FALSE(write_one(*a, {.id = kId, .lease = 1, .owner = kOwner}));
  EXPECT_EQ(take_it(*b).error().code, ErrorCode::not_found);
  EXPECT_TRUE(shared.objects.empty());
}

TEST(SharedSessions, AnAnswerThatEndsAfterItsSessionBringsNothingBack) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_FALSE(write_one(*a, with_tokens(image(), {1}, 1)));
  ASSERT_TRUE(take_it(*b));
  ASSERT_FALSE(write_one(*b, {.id = kId, .lease = 2, .owner = kOwner}));
  EXPECT_EQ(write_one(*a, with_tokens(image(), {2}, 1))->code, ErrorCode::conflict);
  EXPECT_EQ(take_it(*node_of(shared, 3)).error().code, ErrorCode::not_found);
  shared.leases.clear();
  EXPECT_EQ(take_it(*node_of(shared, 3)).error().code, ErrorCode::not_found) << "nor where leases are forgotten";
}

TEST(SharedSessions, NoNameIsWrittenTwice) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_FALSE(write_one(*a, with_tokens(image(), {1}, 1)));
  ASSERT_TRUE(take_it(*b));
  SessionChange late = whole(image(3), 1);
  late.made = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(write_one(*a, late)->code, ErrorCode::conflict);
  EXPECT_TRUE(take_it(*node_of(shared, 3))) << "what was acknowledged is still there";
}

TEST(SharedSessions, TheEndOfASessionThatAnotherNodeHasIsRefused) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_TRUE(take_it(*b));
  ASSERT_TRUE(take_it(*a));
  ASSERT_FALSE(write_one(*a, whole(image(), 3)));
  EXPECT_EQ(write_one(*a, {.id = kId, .lease = 1, .owner = kOwner})->code, ErrorCode::conflict);
  EXPECT_FALSE(write_one(*a, with_tokens(image(), {1}, 3))) << "and the newer lease goes on";
}

TEST(SharedSessions, ANodeThatHasLostASessionDoesNotEndIt) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_TRUE(take_it(*b));
  ASSERT_FALSE(write_one(*b, whole(image(), 2)));
  shared.leases.clear();
  EXPECT_TRUE(write_one(*a, {.id = kId, .lease = 1, .owner = kOwner})) << "it has expired here";
  EXPECT_FALSE(write_one(*b, with_tokens(image(), {1}, 2)));
}

TEST(SharedSessions, SweepsWhatNoNodeHasEnded) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  const auto b = node_of(shared, 2);
  shared.now += 600 + 3599;
  EXPECT_EQ(*b->sweep({}), 0U) << "an answer may take an hour";
  shared.now += 1;
  shared.store_faults = 100;
  EXPECT_FALSE(b->sweep({}));
  shared.store_faults = 0;
  EXPECT_EQ(*b->sweep({}), 0U);
  shared.now += 60;
  EXPECT_EQ(*b->sweep({}), 1U) << "it tries again";
  EXPECT_TRUE(shared.objects.empty());
}

TEST(SharedSessions, AStoreThatHasLostWhatItAcknowledgedIsNotBelieved) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  ASSERT_FALSE(write_one(*a, with_tokens(image(), {1}, 1)));
  ASSERT_FALSE(write_one(*a, with_tokens(image(), {1}, 1)));
  const auto whole_store = shared.objects;
  for (const auto& [name, bytes] : whole_store) {
    shared.objects = whole_store;
    shared.objects.erase(name);
    EXPECT_EQ(take_it(*node_of(shared, 9)).error().code, ErrorCode::unavailable) << name;
  }
}

TEST(SharedSessions, KvComesBackForAHistoryThatBeginsSo) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  const Tenant tenant{.id = 3, .lasting = 55};
  std::vector<Token> history{1, 2, 3, 4, 5, 6};
  const SlotCopy first{0, 0, {1, 2}, fake_kv(2, 100)};
  const SlotCopy copy{0, 0, {1, 2, 3, 4}, fake_kv(4, 200)};
  ASSERT_TRUE(a->put_kv(kId, tenant, fake_identity(), first));
  ASSERT_TRUE(a->put_kv(kId, tenant, fake_identity(), copy));
  EXPECT_EQ(shared.objects.size(), 1U) << "the one before is of no use";
  const auto got = b->get_kv(kId, tenant, fake_identity(), history, {});
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->tokens, copy.tokens);
  EXPECT_TRUE(same_bytes(*(*got)->kv, *copy.kv));

  history[2] = 9;
  EXPECT_FALSE(*b->get_kv(kId, tenant, fake_identity(), history, {})) << "another history";
  EXPECT_FALSE(*b->get_kv(kId, Tenant{.id = 4, .lasting = 56}, fake_identity(), copy.tokens, {})) << "another tenant";
  EXPECT_FALSE(*b->get_kv(kId, tenant, fake_identity(), std::span(copy.tokens).first(3), {}));
}

TEST(SharedSessions, SaysWhetherAnAnswerCouldBePut) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  EXPECT_TRUE(a->check_answers(kId));
  shared.objects[object_name(answer_folder("", kId), {0, 9, 9})];  // of a node that has died amid it
  const auto none = a->get_answer(kId);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  ASSERT_TRUE(a->put_answer(kId, {.stream = "s", .history = 4, .tokens = {5}}));
  const auto found = node_of(shared, 2)->get_answer(kId);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->tokens, (std::vector<Token>{5}));
  EXPECT_EQ(shared.objects.size(), 2U) << "checks go with the next answer";
  shared.store_faults = 100;
  EXPECT_EQ(a->check_answers(kId).error().code, ErrorCode::unavailable);
}

TEST(SharedSessions, AnAnswerThatIsPutAfterTheEndOfItsSessionGoes) {
  for (const bool removable : {true, false}) {
    FakeShared shared;
    const auto a = node_of(shared, 1);
    const auto b = node_of(shared, 2);
    ASSERT_FALSE(write_one(*a, whole(image(), 1)));
    ASSERT_TRUE(take_it(*b));
    ASSERT_FALSE(write_one(*b, {.id = kId, .lease = 2, .owner = kOwner}));
    ASSERT_TRUE(shared.objects.empty());
    if (!removable) shared.meanwhile = [&] { shared.store_faults = 100; };
    if (removable) {
      EXPECT_FALSE(a->check_answers(kId));
    }
    EXPECT_FALSE(a->put_answer(kId, {.stream = "s", .tokens = {5}}));
    EXPECT_EQ(shared.objects.size(), removable ? 0U : 1U);
    shared.meanwhile = [] {};
    shared.store_faults = 0;
    EXPECT_TRUE(a->sweep({}));
    EXPECT_TRUE(shared.objects.empty());
  }
}

TEST(SharedSessions, AnAnswerStaysWhereItIsNotKnownWhetherItsSessionHasEnded) {
  FakeShared shared;
  const auto a = node_of(shared, 1);
  const auto b = node_of(shared, 2);
  ASSERT_FALSE(write_one(*a, whole(image(), 1)));
  shared.lease_faults = 100;
  EXPECT_FALSE(a->put_answer(kId, {.stream = "s", .tokens = {5}})) << "the node does not rely on it";
  shared.lease_faults = 0;
  EXPECT_TRUE(a->sweep({kId}));
  EXPECT_TRUE(take_it(*b)) << "and the session is there";
  ASSERT_FALSE(write_one(*b, {.id = kId, .lease = 2, .owner = kOwner}));
  EXPECT_TRUE(shared.objects.empty());
}

// Three nodes change one session at random, each as the persister does: it claims, takes where the session was not
// here, and writes a turn with a token that was never used before. Faults strike everywhere.
class SharedSessionsLife {
 public:
  explicit SharedSessionsLife(std::uint64_t seed) {
    shared_.random.seed(seed);
    for (std::uint32_t i = 0; i < 3; ++i) replace(i);
    SessionImage first = image();
    first.tokens = acknowledged_ = {0};
    first.chat = nullptr;
    CHECK(!write_one(*nodes_[0].sessions, whole(first, 1)));
    nodes_[0].session = first;
    nodes_[0].lease = 1;
    shared_.meanwhile = [this] {
      if (depth_ < 3 && shared_.chance(15)) step();
    };
  }

  FakeShared& shared() { return shared_; }

  void step() {
    ++depth_;
    Node& node = nodes_[shared_.random() % 3];
    if (shared_.chance(5)) {
      replace(static_cast<std::uint32_t>(&node - nodes_.data()));
    } else if (!node.busy) {
      node.busy = true;
      const std::uint32_t life = node.life;
      change(node, life);
      if (node.life == life) node.busy = false;
    }
    --depth_;
  }

  std::size_t acknowledged() const { return acknowledged_.size(); }

 private:
  struct Node {
    std::shared_ptr<SharedSessions> sessions;
    std::optional<SessionImage> session{};
    std::uint64_t lease = 0;
    bool written = false;
    bool busy = false;
    std::uint32_t life = 0;
  };

  // A process that dies, also in the middle of a call, and another one in its place.
  void replace(std::uint32_t i) { nodes_[i] = Node{.sessions = node_of(shared_, ++last_node_), .life = last_node_}; }

  void change(Node& node, std::uint32_t life) {
    const auto sessions = node.sessions;  // it may die meanwhile, and then what it says is heard no more
    const auto claim = sessions->claim(kId, kOwner);
    if (!claim || node.life != life) return;
    ASSERT_NE(claim->kind, SessionClaim::Kind::none);
    if (claim->kind != SessionClaim::Kind::here || !node.session) {
      node.session.reset();
      const auto taken = sessions->take(kId, kOwner, *claim, weights(), kFileLimits, kNow);
      if (!taken) {
        ASSERT_NE(taken.error().code, ErrorCode::not_found) << taken.error().message;
        return;
      }
      if (node.life != life) return;
      node.session = taken->image;
      node.lease = taken->lease;
      node.written = false;
    }
    const Token fresh = static_cast<Token>(++last_token_ % 1000);
    SessionImage after = *node.session;
    after.tokens.push_back(fresh);
    const bool turn = node.written && shared_.chance(80);
    SessionChange change = turn ? with_tokens(*node.session, {fresh}, node.lease) : whole(after, node.lease);
    change.made = false;
    const auto error = write_one(*sessions, change);
    if (!error) {
      // Whether or not the process has died since: the store has said so.
      ASSERT_TRUE(after.tokens.size() > acknowledged_.size() &&
                  std::ranges::equal(acknowledged_, std::span(after.tokens).first(acknowledged_.size())))
          << "what was acknowledged before is not in what is acknowledged now";
      acknowledged_ = after.tokens;
    }
    if (node.life != life) return;
    if (error && error->code != ErrorCode::conflict && shared_.chance(50)) {
      node.written = node.written && turn;  // as it was: the next one writes behind what was acknowledged
      return;
    }
    if (error) return node.session.reset();
    node.session = after;
    node.written = true;
  }

  FakeShared shared_;
  std::vector<Node> nodes_{3};
  std::vector<Token> acknowledged_;
  std::uint32_t last_node_ = 0;
  std::uint64_t last_token_ = 0;
  int depth_ = 0;
};

TEST(SharedSessions, NoAcknowledgedTurnIsLostWhateverFails) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SharedSessionsLife life(seed);
    life.shared().store_faults = 12;
    life.shared().lease_faults = 12;
    life.shared().old_lists = 20;
    for (int i = 0; i < 150 && !testing::Test::HasFatalFailure(); ++i) life.step();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    EXPECT_GT(life.acknowledged(), 20U) << seed;
  }
}

TEST(SharedSessions, NoAcknowledgedTurnIsLostWhenLeasesAreForgotten) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SharedSessionsLife life(seed);
    life.shared().store_faults = 12;
    life.shared().lease_faults = 12;
    for (int i = 0; i < 150 && !testing::Test::HasFatalFailure(); ++i) {
      if (life.shared().chance(10)) life.shared().leases.clear();
      life.step();
    }
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    EXPECT_GT(life.acknowledged(), 20U) << seed;
  }
}

}  // namespace
}  // namespace chasqui::store
