#include "engine/placement.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

using Reason = Placement::Reason;

// Workers that say of themselves what the test wants, and requests with numbers of their own.
struct Office {
  explicit Office(std::size_t workers = 2, std::int32_t slots = 4, const SentPrompts::Limits& sent = {},
                  std::size_t pins_max = 100)
      : placement({workers, slots, false, pins_max, sent}), states(workers) {
    for (WorkerState& state : states) {
      state.load.slots = slots;
      state.load.slot_time = seconds(1);
      state.load.row_time = milliseconds(1);
    }
  }

  struct Ask {
    TokenCount prompt = 10;
    std::uint64_t salt = 0;  // 0: unlike all others
    std::uint64_t pin = 0;
    std::uint32_t tenant = 0;
    bool use_cache = true;
    AdapterSetPtr adapters{};
  };

  RequestPtr request(const Ask& ask) {
    RequestLimits limits = test_limits();
    limits.context = 100'000;
    RequestDraft draft;
    ++last;
    draft.prompt = test_prompt(ask.prompt, ask.salt != 0 ? ask.salt : 1'000'000 + last);
    draft.max_tokens = 10;
    draft.pin = ask.pin;
    draft.tenant.id = ask.tenant;
    draft.use_cache = ask.use_cache;
    draft.adapters = ask.adapters;
    return test_request(last, std::move(draft), limits);
  }

  Placement::Choice choose(const Ask& ask) {
    const auto choice = placement.place(*request(ask), states);
    EXPECT_TRUE(choice.has_value());
    EXPECT_TRUE(placement.consistent());
    EXPECT_EQ(placement.worker_of(RequestId{last}), choice->worker);
    return *choice;
  }
  std::size_t place(const Ask& ask) { return choose(ask).worker; }
  // Places it, and it ends at once.
  std::size_t serve(const Ask& ask) {
    const std::size_t worker = place(ask);
    placement.ended(RequestId{last});
    return worker;
  }

  Placement placement;
  std::vector<WorkerState> states;
  std::uint64_t last = 0;
};

TEST(Placement, RequestsThatShareNothingAreSpreadEvenly) {
  Office office(3, 4);
  for (int i = 0; i < 30; ++i) office.place({});
  for (std::size_t worker = 0; worker < 3; ++worker) EXPECT_EQ(office.placement.in_flight(worker), 10u);
}

TEST(Placement, IdleWorkersTakeTurns) {
  Office office(3);
  std::vector<std::size_t> order;
  for (int i = 0; i < 6; ++i) order.push_back(office.serve({}));
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
}

TEST(Placement, AWorkerWithMoreToReadGetsLess) {
  Office office;
  office.states[0].load.tokens_to_prefill = 5000;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(office.place({}), 1u);
}

TEST(Placement, ALongPromptThatTheWorkerCannotHaveHeardOfYetCounts) {
  Office office(2, 100);
  EXPECT_EQ(office.place({.prompt = 5000}), 0u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(office.place({}), 1u);
  office.states[0].load.running = 1;  // it has heard of it, and has read it
  office.states[1].load.running = 20;
  EXPECT_EQ(office.place({}), 0u);
}

TEST(Placement, EqualPrefixesGoToTheWorkerThatHadThemFirst) {
  Office office(4, 4);
  office.serve({});
  const Placement::Choice first = office.choose({.prompt = 1000, .salt = 5});
  EXPECT_EQ(first.reason, Reason::load);
  office.placement.ended(RequestId{office.last});
  for (int i = 0; i < 10; ++i) {
    const Placement::Choice choice = office.choose({.prompt = 1000 + i, .salt = 5});
    EXPECT_EQ(choice.worker, first.worker);
    EXPECT_EQ(choice.reason, Reason::prefix);
    office.placement.ended(RequestId{office.last});
  }
}

// After how many requests with the same prefix the first goes elsewhere, of twenty.
std::ptrdiff_t spilled_after(Office& office, TokenCount prefix) {
  std::vector<std::size_t> placed;
  for (int i = 0; i < 20; ++i) placed.push_back(office.place({.prompt = prefix, .salt = 5}));
  return std::ranges::find(placed, 1u) - placed.begin();
}

TEST(Placement, APrefixIsFollowedUntilQueueingCostsMoreThanComputingItElsewhere) {
  // Each of four in flight costs a quarter of a second, and a request that finds no slot free waits one second longer.
  // That the first is still reading the prefix is no reason to read it twice.
  Office cheap;
  EXPECT_EQ(spilled_after(cheap, 500), 2) << "half a second: as much as two neighbours";
  Office dear;
  EXPECT_EQ(spilled_after(dear, 2000), 4) << "two seconds: as much as four, but not to wait for a slot as well";
  EXPECT_EQ(dear.placement.in_flight(0), 10u) << "from there on both have it, and share";
  EXPECT_EQ(dear.placement.in_flight(1), 10u);
  Office dearest;
  EXPECT_EQ(spilled_after(dearest, 4000), 12) << "four seconds: worth standing in a line of eight";
}

TEST(Placement, NoRequestQueuesBehindThoseThatHaveHeldTheirSlotsForLong) {
  Office office;
  office.states[0].held = seconds(100);
  EXPECT_EQ(spilled_after(office, 4000), 4);
}

TEST(Placement, AFewWordsOfATemplateAreNoReasonToFollow) {
  Office office(2);
  std::set<std::size_t> used;
  for (int i = 0; i < 4; ++i) used.insert(office.serve({.prompt = Placement::kWorthFollowing - 1, .salt = 5}));
  EXPECT_EQ(used.size(), 2u);
}

TEST(Placement, OtherTenantsPrefixesDoNotMoveARequest) {
  Office office(2);
  EXPECT_EQ(office.serve({.prompt = 500, .salt = 5, .tenant = 1}), 0u);
  const Placement::Choice stranger = office.choose({.prompt = 500, .salt = 5, .tenant = 2});
  EXPECT_EQ(stranger.worker, 1u) << "its turn";
  EXPECT_EQ(stranger.reason, Reason::load);
}

TEST(Placement, ARequestWithoutTheCacheIsPlacedByLoadAndLeavesNoTrace) {
  Office office(2);
  EXPECT_EQ(office.serve({.prompt = 500, .salt = 5, .use_cache = false}), 0u);
  EXPECT_EQ(office.placement.sent_tokens(), 0u);
  EXPECT_EQ(office.serve({.prompt = 500, .salt = 5}), 1u);
  EXPECT_EQ(office.choose({.prompt = 500, .salt = 5, .use_cache = false}).reason, Reason::load);
}

TEST(Placement, APinHoldsForLifeWhateverTheLoad) {
  Office office(3);
  const std::size_t home = office.serve({.pin = 7});
  office.states[home].load.tokens_to_prefill = 1'000'000;
  office.states[home].alive = false;
  for (int i = 0; i < 100; ++i) {
    const Placement::Choice choice = office.choose({.pin = 7});
    EXPECT_EQ(choice.worker, home);
    EXPECT_EQ(choice.reason, Reason::pin);
  }
  EXPECT_EQ(office.placement.pins(), 1u);
  office.placement.unpin(7);
  EXPECT_EQ(office.placement.pins(), 0u);
  EXPECT_NE(office.place({.pin = 7}), home) << "a new session";
  office.placement.unpin(8);  // unknown: harmless
  EXPECT_TRUE(office.placement.consistent());
}

TEST(Placement, IdleSessionsAreSpreadEvenly) {
  Office office(2);
  office.serve({.pin = 1});
  office.serve({});  // so that it is the first worker's turn again
  for (std::uint64_t pin = 2; pin <= 10; ++pin) office.serve({.pin = pin});
  std::size_t at[2] = {0, 0};
  for (std::uint64_t pin = 1; pin <= 10; ++pin) ++at[office.serve({.pin = pin})];
  EXPECT_EQ(at[0], 5u);
  EXPECT_EQ(at[1], 5u);
}

TEST(Placement, ASessionBeginsWhereItsPrefixIs) {
  Office office(2);
  EXPECT_EQ(office.serve({.prompt = 500, .salt = 5, .pin = 1}), 0u);
  const Placement::Choice fork = office.choose({.prompt = 600, .salt = 5, .pin = 2});
  EXPECT_EQ(fork.worker, 0u);
  EXPECT_EQ(fork.reason, Reason::prefix);
}

TEST(Placement, SessionsThatAllBeginAlikeAreNotAllOfOneWorkerForLife) {
  Office office(3);
  std::size_t at[3] = {0, 0, 0};
  for (std::uint64_t pin = 1; pin <= 60; ++pin) ++at[office.serve({.prompt = 500, .salt = 5, .pin = pin})];
  for (const std::size_t sessions : at) EXPECT_GE(sessions, 18u);
  EXPECT_EQ(office.choose({.prompt = 500, .salt = 5}).reason, Reason::prefix);
}

TEST(Placement, OnePinTooManyChangesNothing) {
  Office office(2, 4, {}, 3);
  for (std::uint64_t pin = 1; pin <= 3; ++pin) office.place({.pin = pin});
  const RequestPtr refused = office.request({.prompt = 100, .pin = 4});
  const std::size_t tokens = office.placement.sent_tokens();
  EXPECT_FALSE(office.placement.place(*refused, office.states).has_value());
  EXPECT_EQ(office.placement.in_flight(), 3u);
  EXPECT_EQ(office.placement.sent_tokens(), tokens);
  EXPECT_FALSE(office.placement.worker_of(refused->id).has_value());
  office.place({.pin = 2});
  office.place({});
  office.placement.unpin(1);
  EXPECT_TRUE(office.placement.place(*refused, office.states).has_value());
  EXPECT_TRUE(office.placement.consistent());
}

TEST(Placement, AWorkerThatHangsGetsNoNewWorkWhileAnotherMoves) {
  Office office(3);
  EXPECT_EQ(office.serve({.prompt = 500, .salt = 5}), 0u);
  office.states[0].alive = false;
  for (int i = 0; i < 10; ++i) EXPECT_NE(office.place({.prompt = 500, .salt = 5}), 0u);
  for (WorkerState& state : office.states) state.alive = false;
  EXPECT_EQ(office.place({}), 0u) << "all hang: it has least to do";
}

TEST(Placement, RemembersARequestFromItsPlaceToItsEndAndNoLonger) {
  Office office(2);
  office.place({});
  const RequestId id{office.last};
  EXPECT_TRUE(office.placement.worker_of(id).has_value());
  office.placement.ended(id);
  EXPECT_FALSE(office.placement.worker_of(id).has_value());
  EXPECT_EQ(office.placement.in_flight(), 0u);
  office.placement.ended(id);  // twice, or never placed: harmless
  EXPECT_EQ(office.placement.in_flight(), 0u);
  EXPECT_TRUE(office.placement.consistent());
}

TEST(Placement, KeepsItsBooksWhateverComes) {
  std::mt19937 random(11);
  Office office(4, 3, {.entries = 50, .tokens = 5000}, 20);
  std::vector<RequestId> inside;
  for (int i = 0; i < 5000; ++i) {
    if (random() % 2 == 0 && !inside.empty()) {
      std::swap(inside[random() % inside.size()], inside.back());
      office.placement.ended(inside.back());
      inside.pop_back();
    } else {
      const RequestPtr request = office.request({.prompt = static_cast<TokenCount>(1 + random() % 300),
                                                 .salt = random() % 10,
                                                 .pin = random() % 30,
                                                 .tenant = static_cast<std::uint32_t>(random() % 3),
                                                 .use_cache = random() % 5 != 0});
      if (office.placement.place(*request, office.states)) inside.push_back(request->id);
    }
    if (random() % 20 == 0) office.placement.unpin(random() % 30);
    WorkerState& state = office.states[random() % 4];
    state.alive = random() % 10 != 0;
    state.load.running = static_cast<std::int32_t>(random() % 4);
    state.load.waiting[1] = static_cast<std::int32_t>(random() % 4);
    state.load.tokens_to_prefill = random() % 3000;
    state.load.slot_time = milliseconds(random() % 2000);
    ASSERT_EQ(office.placement.in_flight(), inside.size());
    ASSERT_LE(office.placement.pins(), 20u);
    if (i % 50 == 0) {
      ASSERT_TRUE(office.placement.consistent());
    }
  }
}

TEST(Placement, WhatOtherAdaptersHaveComputedIsNoReasonToGoAnywhere) {
  constexpr float kScales[] = {1};
  constexpr std::uint64_t kContents[] = {5};
  const AdapterSetPtr adapters = make_adapter_set(kScales, kContents);
  Office office;
  const Office::Ask plain{.prompt = 1000, .salt = 1};
  const Office::Ask adapted{.prompt = 1000, .salt = 1, .adapters = adapters};
  office.serve(plain);
  EXPECT_EQ(office.choose(plain).reason, Reason::prefix);
  EXPECT_EQ(office.choose(adapted).reason, Reason::load);
  EXPECT_EQ(office.choose(adapted).reason, Reason::prefix);
}

}  // namespace
}  // namespace chasqui
