#include "sched/wait_queue.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

std::unique_ptr<Sequence> waiting(std::uint64_t id, ServiceClass service_class = ServiceClass::standard,
                                  std::optional<std::int64_t> timeout_ms = std::nullopt) {
  RequestDraft draft;
  draft.prompt = test_prompt(3, id);
  draft.service_class = service_class;
  draft.timeout_ms = timeout_ms;
  return std::make_unique<Sequence>(test_request(id, std::move(draft)));
}

std::vector<std::uint64_t> pop_all(WaitQueue& queue) {
  std::vector<std::uint64_t> order;
  while (!queue.empty()) {
    const RequestId front = queue.front()->id();
    order.push_back(queue.pop()->id().value);
    EXPECT_EQ(front.value, order.back());
  }
  return order;
}

TEST(WaitQueue, IsEmptyAtFirst) {
  WaitQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.front(), nullptr);
  EXPECT_EQ(queue.remove(RequestId{1}), nullptr);
  EXPECT_EQ(queue.remove_expired(kNever - Duration(1)), nullptr);
}

TEST(WaitQueue, WithinAClassTheFirstComerIsFirst) {
  WaitQueue queue;
  for (const std::uint64_t id : {5, 3, 9, 1}) queue.push(waiting(id));
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(pop_all(queue), (std::vector<std::uint64_t>{5, 3, 9, 1}));
}

TEST(WaitQueue, ServesTheMostUrgentClassFirst) {
  WaitQueue queue;
  queue.push(waiting(1, ServiceClass::background));
  queue.push(waiting(2, ServiceClass::standard));
  queue.push(waiting(3, ServiceClass::interactive));
  queue.push(waiting(4, ServiceClass::background));
  queue.push(waiting(5, ServiceClass::interactive));
  EXPECT_EQ(pop_all(queue), (std::vector<std::uint64_t>{3, 5, 2, 1, 4}));
}

TEST(WaitQueue, RemovesFromAnywhereAndKeepsTheOrderOfTheOthers) {
  WaitQueue queue;
  for (const std::uint64_t id : {1, 2, 3}) queue.push(waiting(id));
  queue.push(waiting(4, ServiceClass::background));
  EXPECT_EQ(queue.remove(RequestId{2})->id(), RequestId{2});
  EXPECT_EQ(queue.remove(RequestId{2}), nullptr);
  EXPECT_EQ(queue.remove(RequestId{4})->id(), RequestId{4});
  EXPECT_EQ(pop_all(queue), (std::vector<std::uint64_t>{1, 3}));
}

TEST(WaitQueue, TakesOutExactlyThoseWhoseTimeIsUp) {
  WaitQueue queue;
  queue.push(waiting(1));
  queue.push(waiting(2, ServiceClass::standard, 10));
  queue.push(waiting(3, ServiceClass::background, 20));
  queue.push(waiting(4, ServiceClass::background, 5));
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(5)})->id(), RequestId{4});
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(9)}), nullptr);
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(10)})->id(), RequestId{2});
  EXPECT_EQ(queue.remove_expired(TimePoint{milliseconds(10)}), nullptr);
  EXPECT_EQ(pop_all(queue), (std::vector<std::uint64_t>{1, 3}));
}

}  // namespace
}  // namespace chasqui
