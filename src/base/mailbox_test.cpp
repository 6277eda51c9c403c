#include "base/mailbox.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Mailbox, GivesBackWhatWasPushedInOrder) {
  Mailbox<int> box(8);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(box.push(int{i}));
  EXPECT_EQ(box.size(), 3u);
  std::vector<int> out{99};
  box.drain(out);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(box.size(), 0u);
  box.drain(out);
  EXPECT_TRUE(out.empty());
}

TEST(Mailbox, MergesWhatCanBeOne) {
  using Sum = std::pair<char, int>;
  Mailbox<Sum> box(1);
  const auto add = [&box](char name, int value) {
    box.merge({name, value}, [](Sum& waiting, Sum& later) {
      if (waiting.first != later.first) return false;
      waiting.second += later.second;
      return true;
    });
  };
  add('a', 1);
  add('b', 10);
  add('a', 2);
  std::vector<Sum> out;
  box.drain(out);
  EXPECT_EQ(out, (std::vector<Sum>{{'a', 3}, {'b', 10}}));
  add('a', 4);
  box.drain(out);
  EXPECT_EQ(out, (std::vector<Sum>{{'a', 4}}));
}

TEST(Mailbox, IsBoundedAndLeavesARefusedItemUntouched) {
  Mailbox<std::unique_ptr<int>> box(2);
  EXPECT_TRUE(box.push(std::make_unique<int>(1)));
  EXPECT_TRUE(box.push(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(box.push(std::move(third)));
  ASSERT_NE(third, nullptr);
  std::vector<std::unique_ptr<int>> out;
  box.drain(out);
  EXPECT_TRUE(box.push(std::move(third)));
}

TEST(Mailbox, PushAllKeepsTheOrderEmptiesItsArgumentAndNotifiesOnce) {
  int notified = 0;
  Mailbox<int> box(100, [&notified] { ++notified; });
  std::vector<int> first{1, 2, 3}, second{4, 5}, none;
  box.push_all(first);
  EXPECT_EQ(notified, 1);
  box.push_all(second);
  EXPECT_EQ(notified, 2);
  box.push_all(none);
  EXPECT_EQ(notified, 2) << "nothing happened: no thread is woken";
  EXPECT_TRUE(first.empty());
  EXPECT_TRUE(second.empty());
  std::vector<int> out;
  box.drain(out);
  EXPECT_EQ(out, (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST(Mailbox, PushAllGoesBeyondTheCapacityAndSaysSo) {
  Mailbox<int> box(2);
  std::vector<int> items{1, 2};
  box.push_all(items);
  EXPECT_FALSE(box.over_capacity());
  items = {3};
  box.push_all(items);
  EXPECT_TRUE(box.over_capacity());
  EXPECT_FALSE(box.push(4));
  std::vector<int> out;
  box.drain(out);
  EXPECT_EQ(out, (std::vector<int>{1, 2, 3}));
}

TEST(Mailbox, NotifiesForEachAcceptedPushOnly) {
  int notified = 0;
  Mailbox<int> box(1, [&notified] { ++notified; });
  EXPECT_TRUE(box.push(1));
  EXPECT_FALSE(box.push(2));
  EXPECT_EQ(notified, 1);
}

TEST(Mailbox, AfterCloseTheRestCanBeDrainedAndNothingComesIn) {
  Mailbox<int> box(8);
  EXPECT_TRUE(box.push(1));
  box.close();
  EXPECT_FALSE(box.push(2));
  std::vector<int> out;
  box.drain(out, Wait::yes);
  EXPECT_EQ(out, std::vector<int>{1});
  box.drain(out, Wait::yes);  // does not hang
  EXPECT_TRUE(out.empty());
}

TEST(Mailbox, CloseWakesAWaitingConsumer) {
  Mailbox<int> box(8);
  std::atomic<bool> returned{false};
  std::thread consumer([&] {
    std::vector<int> out;
    box.drain(out, Wait::yes);
    returned = out.empty();
  });
  box.close();
  consumer.join();
  EXPECT_TRUE(returned);
}

TEST(Mailbox, APushWakesAWaitingConsumer) {
  Mailbox<int> box(8);
  std::vector<int> out;
  std::thread consumer([&] { box.drain(out, Wait::yes); });
  EXPECT_TRUE(box.push(7));
  consumer.join();
  EXPECT_EQ(out, std::vector<int>{7});
}

TEST(Mailbox, WhatRunsUnseenRunsBeforeTheConsumerHasTheItem) {
  constexpr int kPushes = 2'000;
  Mailbox<int> box(kPushes);
  std::atomic<int> prepared{-1};
  std::thread consumer([&] {
    std::vector<int> out;
    for (int seen = 0; seen < kPushes;) {
      box.drain(out, Wait::yes);
      for (const int item : out) ASSERT_LE(item, prepared.load());
      seen += static_cast<int>(out.size());
    }
  });
  std::vector<int> one;
  for (int i = 0; i < kPushes; i += 2) {
    EXPECT_TRUE(box.push(int{i}, [&] { prepared = i; }));
    one.assign(1, i + 1);
    box.push_all(one, [&] { prepared = i + 1; });
  }
  consumer.join();
}

TEST(Mailbox, WhatWaitsIsShownAndStays) {
  Mailbox<int> box(4);
  EXPECT_TRUE(box.push(1) && box.push(2));
  std::vector<int> out;
  box.look_at_waiting([&](int item) { out.push_back(item); });
  EXPECT_EQ(out, (std::vector<int>{1, 2}));
  box.drain(out);
  EXPECT_EQ(out, (std::vector<int>{1, 2}));
  box.look_at_waiting([](int) { FAIL(); });
}

TEST(Mailbox, NothingIsRunForARefusedItem) {
  Mailbox<int> box(1);
  EXPECT_TRUE(box.push(1));
  EXPECT_FALSE(box.push(2, [] { FAIL(); }));
}

// Four producers, half by push() with retries against a small box, half by push_all(); the consumer sleeps in between.
TEST(Mailbox, NothingIsLostDoubledOrReorderedWithManyProducers) {
  struct Item {
    int producer;
    int number;
  };
  constexpr int kProducers = 4, kItems = 3000;
  Mailbox<Item> box(64);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&box, p] {
      std::vector<Item> group;
      for (int i = 0; i < kItems; ++i) {
        if (p % 2 == 0) {
          while (!box.push(Item{p, i})) std::this_thread::yield();
        } else {
          group.push_back({p, i});
          if (i % 7 == 0 || i + 1 == kItems) box.push_all(group);
        }
      }
    });
  }
  std::vector<int> next(kProducers, 0);
  std::vector<Item> out;
  for (int received = 0; received < kProducers * kItems; received += static_cast<int>(out.size())) {
    box.drain(out, Wait::yes);
    for (const Item& item : out) ASSERT_EQ(item.number, next[static_cast<std::size_t>(item.producer)]++);
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(next, std::vector<int>(kProducers, kItems));
  EXPECT_EQ(box.size(), 0u);
}

}  // namespace
}  // namespace chasqui
