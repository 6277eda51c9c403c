#include "sched/wait_queue.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

std::unique_ptr<Sequence> waiting_request(std::uint64_t id, ServiceClass service_class = ServiceClass::standard,
                                          std::optional<std::int64_t> timeout_ms = std::nullopt) {
  RequestDraft draft;
  draft.prompt = test_prompt(3, id);
  draft.service_class = service_class;
  draft.timeout_ms = timeout_ms;
  return std::make_unique<Sequence>(test_request(id, std::move(draft)));
}

std::vector<std::uint64_t> ids(const WaitQueue& queue) {
  std::vector<std::uint64_t> found;
  for (const auto& sequence : queue.all()) found.push_back(sequence->id().value);
  std::sort(found.begin(), found.end());
  return found;
}

TEST(WaitQueue, IsEmptyAtFirst) {
  WaitQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.tokens(), 0);
  EXPECT_EQ(queue.remove(RequestId{1}), nullptr);
  EXPECT_EQ(queue.remove_expired(kNever - Duration(1)), nullptr);
}

TEST(WaitQueue, RemovesFromAnywhereAndKeepsTheOthers) {
  WaitQueue queue;
  for (const std::uint64_t id : {1, 2, 3, 4}) queue.push(waiting_request(id));
  EXPECT_EQ(queue.remove(RequestId{2})->id(), RequestId{2});
  EXPECT_EQ(queue.remove(RequestId{2}), nullptr);
  EXPECT_EQ(queue.remove(RequestId{4})->id(), RequestId{4});
  EXPECT_EQ(ids(queue), (std::vector<std::uint64_t>{1, 3}));
  queue.pop();
  queue.pop();
  EXPECT_TRUE(queue.empty());
}

TEST(WaitQueue, CountsItsSequencesByClassAndTheirTokens) {
  WaitQueue queue;
  queue.push(waiting_request(1, ServiceClass::background));
  queue.push(waiting_request(2, ServiceClass::interactive));
  queue.push(waiting_request(3, ServiceClass::background));
  EXPECT_EQ(queue.of_class(ServiceClass::background), 2);
  EXPECT_EQ(queue.of_class(ServiceClass::standard), 0);
  EXPECT_EQ(queue.of_class(ServiceClass::interactive), 1);
  EXPECT_EQ(queue.tokens(), 9);
  queue.remove(RequestId{3});
  EXPECT_EQ(queue.of_class(ServiceClass::background), 1);
  EXPECT_EQ(queue.tokens(), 6);
  queue.pop();
  queue.pop();
  EXPECT_EQ(queue.tokens(), 0);
  for (std::size_t c = 0; c < kServiceClasses; ++c) EXPECT_EQ(queue.of_class(static_cast<ServiceClass>(c)), 0);
}

TEST(WaitQueue, WhatHasWaitedTooLongForASlotOrATokenIsExpired) {
  WaitQueue queue;
  RequestLimits limits = test_limits();
  limits.queue_timeout = seconds(10);
  RequestDraft draft;
  draft.prompt = test_prompt(3, 1);
  queue.push(std::make_unique<Sequence>(test_request(1, draft, limits)));
  draft.ttft_ms = 4000;
  queue.push(std::make_unique<Sequence>(test_request(2, draft, limits)));
  auto preempted = std::make_unique<Sequence>(test_request(3, draft, limits));
  draft.ttft_ms.reset();
  auto late = std::make_unique<Sequence>(test_request(4, draft, limits));
  for (Sequence* sequence : {preempted.get(), late.get()}) {
    sequence->start(SlotId{0}, TimePoint(seconds(1)));
    sequence->preempt(TimePoint{});
  }
  queue.push(std::move(preempted));
  queue.push(std::move(late));
  EXPECT_EQ(queue.remove_expired(TimePoint(seconds(4) - Duration(1))), nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_NE(queue.remove_expired(TimePoint(seconds(4))), nullptr);
  EXPECT_EQ(ids(queue), (std::vector<std::uint64_t>{1, 4}));
  EXPECT_EQ(queue.remove_expired(TimePoint(seconds(10)))->id(), RequestId{1});
  EXPECT_EQ(queue.remove_expired(TimePoint(seconds(1000))), nullptr) << "it has had a slot";
}

TEST(WaitQueue, OfAPreemptedSequenceWhatItSaidIsToBeReadAgainToo) {
  WaitQueue queue;
  auto sequence = waiting_request(1);
  sequence->start(SlotId{0}, TimePoint{});
  sequence->computed_rows(3, {});
  sequence->add_token(7, TimePoint{});
  sequence->preempt(TimePoint{});
  queue.push(std::move(sequence));
  EXPECT_EQ(queue.tokens(), 4);
}

TEST(WaitQueue, TakesOutExactlyThoseWhoseTimeIsUp) {
  WaitQueue queue;
  queue.push(waiting_request(1));
  queue.push(waiting_request(2, ServiceClass::standard, 10));
  queue.push(waiting_request(3, ServiceClass::background, 20));
  queue.push(waiting_request(4, ServiceClass::background, 5));
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(5)})->id(), RequestId{4});
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(9)}), nullptr);
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(10)})->id(), RequestId{2});
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(10)}), nullptr);
  EXPECT_EQ(ids(queue), (std::vector<std::uint64_t>{1, 3}));
}

// The earliest deadline is remembered; it must not be forgotten when another request leaves, nor come back to life.
TEST(WaitQueue, RemembersTheEarliestDeadlineWhenOthersLeave) {
  WaitQueue queue;
  queue.push(waiting_request(1, ServiceClass::standard, 10));
  queue.push(waiting_request(2, ServiceClass::standard, 20));
  queue.push(waiting_request(3, ServiceClass::standard, 20));
  queue.remove(RequestId{1});
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(19)}), nullptr);
  EXPECT_NE(queue.remove_expired(TimePoint{milliseconds(20)}), nullptr);
  EXPECT_NE(queue.remove_expired(TimePoint{milliseconds(20)}), nullptr);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace chasqui
