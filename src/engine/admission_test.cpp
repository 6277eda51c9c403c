// Admission's decisions one by one.
#include "engine/admission.h"

#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr TimePoint kBegun{};

// Two slots, two places to wait, a place every half second.
class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    load_.slots = 2;
    load_.slot_time = seconds(1);
  }

  static AdmissionConfig config() {
    AdmissionConfig config;
    config.slots = 2;
    config.queue_requests = 2;
    config.queue_wait.fill(seconds(45));  // for those who come fresh: 30 s
    return config;
  }

  Result<Permit> enter(RequestHash request_hash, std::uint32_t tenant = 0, std::size_t requests_max = 0) {
    return admission_.enter({tenant, requests_max, request_hash}, load_, now_);
  }

  void fill() {
    for (RequestHash i = 1000; permits_.size() < 4; ++i) permits_.push_back(std::move(*enter(i)));
  }

  Duration refused(RequestHash request_hash) {
    const auto entry = enter(request_hash);
    EXPECT_FALSE(entry);
    if (entry) return {};
    EXPECT_EQ(entry.error().code, ErrorCode::overloaded);
    return entry.error().retry_after;
  }

  void fill_wait(Duration wait) {
    load_.wait.of_short.fill(wait);
    load_.wait.of_long.fill(wait);
  }

  std::uint64_t count(Refusal refusal) const {
    return admission_.metrics().refused[static_cast<std::size_t>(refusal)].value();
  }

  Admission admission_{config()};
  Load load_;
  TimePoint now_ = kBegun + seconds(1000);
  std::vector<Permit> permits_;
};

TEST_F(AdmissionTest, SeveralAnswersCountAsSoManyRequests) {
  Permit first = std::move(*enter(1, 7, 3));
  ASSERT_TRUE(admission_.weigh(first, ServiceClass::standard, 30, load_, now_, 3));
  EXPECT_EQ(admission_.in_flight(), 3u);
  const auto fourth = enter(2, 7, 3);
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().code, ErrorCode::quota_exceeded);
  Permit other = std::move(*enter(3, 8));
  const auto two = admission_.weigh(other, ServiceClass::standard, 10, load_, now_, 2);
  ASSERT_FALSE(two) << "there is one place left";
  EXPECT_EQ(two.error().code, ErrorCode::overloaded);
  EXPECT_EQ(count(Refusal::queue_requests), 1u);
  other.release();
  EXPECT_EQ(admission_.in_flight(), 3u) << "what was not let in takes nothing";
  first.release();
  EXPECT_EQ(admission_.in_flight(), 0u);
  EXPECT_TRUE(enter(2, 7, 3));
}

TEST_F(AdmissionTest, MoreAnswersThanATenantMayHaveAtOnceAreRefused) {
  Permit permit = std::move(*enter(1, 7, 2));
  const auto refusal = admission_.weigh(permit, ServiceClass::standard, 30, load_, now_, 3);
  ASSERT_FALSE(refusal);
  EXPECT_EQ(refusal.error().code, ErrorCode::invalid_request) << "a retry would not help";
  EXPECT_TRUE(admission_.weigh(permit, ServiceClass::standard, 30, load_, now_, 2));
}

TEST_F(AdmissionTest, WhoIsAloneMayWantMoreThanThereArePlaces) {
  Permit permit = std::move(*enter(1));
  EXPECT_TRUE(admission_.weigh(permit, ServiceClass::standard, 80, load_, now_, 8));
  EXPECT_EQ(admission_.in_flight(), 8u);
}

TEST_F(AdmissionTest, PlacesAreTakenAndGivenBack) {
  fill();
  EXPECT_EQ(admission_.in_flight(), 4u);
  EXPECT_GE(refused(1), milliseconds(500));
  EXPECT_EQ(count(Refusal::queue_requests), 1u);
  permits_.pop_back();
  EXPECT_EQ(admission_.in_flight(), 3u);
  auto moved = std::move(permits_.back());
  permits_.pop_back();
  EXPECT_EQ(admission_.in_flight(), 3u);
  moved.release();
  moved.release();
  EXPECT_EQ(admission_.in_flight(), 2u);
}

TEST_F(AdmissionTest, TheNextOneIsToldALaterTime) {
  fill();
  Duration before{};
  for (RequestHash i = 0; i < 20; ++i) {
    const Duration wait = refused(i);
    EXPECT_GE(wait - before, milliseconds(500)) << "a place is free every half second";
    before = wait;
  }
  EXPECT_EQ(admission_.reservations(), 20u);
}

TEST_F(AdmissionTest, RetryAfterIsAtMostAMinute) {
  load_.slot_time = seconds(100);
  fill();
  for (RequestHash i = 0; i < 50; ++i) EXPECT_LE(refused(i), seconds(60));
  EXPECT_LT(admission_.reservations(), 5u) << "what is too far away is not reserved";
}

TEST_F(AdmissionTest, APromisedPlaceIsHeldForTheReturner) {
  fill();
  const Duration wait = refused(1);
  now_ += wait;
  permits_.pop_back();
  EXPECT_FALSE(enter(2)) << "fresh";
  EXPECT_TRUE(enter(1));
  EXPECT_EQ(admission_.metrics().reservations_claimed.value(), 1u);
}

TEST_F(AdmissionTest, AnUnclaimedReservationIsReleased) {
  fill();
  now_ += refused(1) + seconds(10);
  permits_.pop_back();
  EXPECT_TRUE(enter(2));
  EXPECT_EQ(admission_.metrics().reservations_expired.value(), 1u);
  EXPECT_LT(admission_.share_that_returns(), 1);
}

TEST_F(AdmissionTest, AClientThatRetriesTooEarlyIsToldTheRest) {
  fill();
  for (RequestHash i = 1; i <= 8; ++i) refused(i);
  const Duration wait = refused(9);
  now_ += seconds(1);
  EXPECT_EQ(refused(9), wait - seconds(1));
  EXPECT_EQ(admission_.reservations(), 9u);
}

TEST_F(AdmissionTest, AClientThatRetriesInTimeAndFindsNoPlaceKeepsItsTurn) {
  fill();
  const Duration wait = refused(1);
  refused(2);
  now_ += wait;
  const Duration again = refused(1);
  EXPECT_LE(again, seconds(2));
  EXPECT_EQ(admission_.reservations(), 2u);
  EXPECT_EQ(admission_.metrics().reservations_late.value(), 1u);
  now_ += again;
  permits_.pop_back();
  EXPECT_TRUE(enter(1));
}

TEST_F(AdmissionTest, EqualRequestsOfOneMomentAreDifferentClients) {
  fill();
  const Duration first = refused(5);
  EXPECT_GT(refused(5), first);
  EXPECT_EQ(admission_.reservations(), 2u);
}

TEST_F(AdmissionTest, PromisesAreBounded) {
  AdmissionConfig small = config();
  small.reservations_max = 8;
  Admission admission(small);
  load_.slot_time = milliseconds(1);
  std::vector<Permit> permits;
  for (RequestHash i = 0; i < 4; ++i) permits.push_back(std::move(*admission.enter({0, 0, i}, load_, now_)));
  for (RequestHash i = 10; i < 100; ++i) {
    const auto entry = admission.enter({0, 0, i}, load_, now_);
    ASSERT_FALSE(entry);
    EXPECT_GT(entry.error().retry_after, Duration::zero());
  }
  EXPECT_EQ(admission.reservations(), 8u);
}

TEST_F(AdmissionTest, ATenantHasALimitOfItsOwn) {
  const auto first = enter(1, 7, 1);
  ASSERT_TRUE(first);
  const auto second = enter(2, 7, 1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::quota_exceeded);
  EXPECT_EQ(second.error().retry_after, seconds(1)) << "when its request is expected to end";
  const auto third = enter(3, 7, 1);
  EXPECT_GT(third.error().retry_after, second.error().retry_after);
  EXPECT_TRUE(enter(3, 8, 1)) << "another tenant";
  EXPECT_EQ(admission_.reservations(), 0u) << "a quota is not a queue";
}

TEST_F(AdmissionTest, DrainingRefusesEverybody) {
  admission_.drain();
  const auto entry = enter(1);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::unavailable);
  EXPECT_EQ(count(Refusal::draining), 1u);
}

TEST_F(AdmissionTest, ALongWaitIsRefusedByClass) {
  load_.running = 2;
  load_.wait.of_short = load_.wait.of_long = {seconds(2), seconds(29), seconds(40)};
  auto permit = std::move(*enter(1));
  const auto background = admission_.weigh(permit, ServiceClass::background, 10, load_, now_);
  ASSERT_FALSE(background);
  EXPECT_EQ(background.error().code, ErrorCode::overloaded);
  EXPECT_GE(background.error().retry_after, seconds(10)) << "until the wait is what is allowed";
  EXPECT_EQ(count(Refusal::queue_wait), 1u);
  EXPECT_EQ(admission_.reservations(), 1u);
  permits_.push_back(std::move(permit));
  EXPECT_TRUE(admission_.weigh(permits_[0], ServiceClass::standard, 10, load_, now_));
}

TEST_F(AdmissionTest, ByDefaultNothingIsRefusedForItsWait) {
  AdmissionConfig plain;
  plain.slots = 2;
  Admission admission(plain);
  load_.running = 2;
  fill_wait(seconds(10'000));
  std::vector<Permit> permits;
  for (RequestHash i = 0; i < 5000; ++i) {
    permits.push_back(std::move(*admission.enter({0, 0, i}, load_, now_)));
    EXPECT_TRUE(admission.weigh(permits.back(), ServiceClass::interactive, 1000, load_, now_)) << "number " << i;
  }
}

TEST_F(AdmissionTest, AClientThatAcceptsNoLongWaitIsRefusedForIt) {
  AdmissionConfig plain;
  plain.slots = 2;
  Admission admission(plain);
  load_.running = 2;
  fill_wait(seconds(20));
  const auto weigh = [&](Duration wait_max) {
    auto permit = std::move(*admission.enter({0, 0, 0}, load_, now_));
    return admission.weigh(permit, ServiceClass::standard, 10, load_, now_, 1, wait_max);
  };
  EXPECT_TRUE(weigh(seconds(21)));
  const auto refusal = weigh(seconds(5));
  ASSERT_FALSE(refusal);
  EXPECT_EQ(refusal.error().code, ErrorCode::overloaded);
  EXPECT_EQ(refusal.error().retry_after, seconds(15));
  EXPECT_EQ(admission.metrics().refused[static_cast<std::size_t>(Refusal::ttft_timeout)].value(), 1u);
  EXPECT_EQ(admission.reservations(), 0u) << "places are for those who would have waited";
}

TEST_F(AdmissionTest, RequestsThatTakeNoSlotHaveAQuotaOfTheirOwn) {
  const auto aside = [&](std::uint32_t tenant) { return admission_.enter_aside({tenant, 2, 0}, now_); };
  fill();
  auto first = aside(7);
  auto second = aside(7);
  EXPECT_TRUE(first && second) << "all places in the queue are taken, but they need none";
  EXPECT_EQ(admission_.in_flight(), 4u);
  const auto third = aside(7);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::quota_exceeded);
  EXPECT_NE(third.error().message.find("the limit is 2"), std::string::npos);
  EXPECT_TRUE(aside(8)) << "another tenant";
  first->release();
  EXPECT_TRUE(aside(7));
  permits_.clear();
  EXPECT_TRUE(enter(1, 7, 1)) << "the other quota";
  admission_.drain();
  EXPECT_TRUE(aside(9)) << "what runs may still have to count its tokens";
}

TEST_F(AdmissionTest, EachClassHasItsOwnLongestWait) {
  AdmissionConfig strict = config();
  strict.queue_wait = {seconds(1), seconds(5), Duration::zero()};
  Admission admission(strict);
  load_.running = 2;
  fill_wait(seconds(3));
  const auto weigh = [&](ServiceClass service_class) {
    auto permit = std::move(*admission.enter({0, 0, 0}, load_, now_));
    return admission.weigh(permit, service_class, 10, load_, now_).has_value();
  };
  EXPECT_FALSE(weigh(ServiceClass::interactive));
  EXPECT_TRUE(weigh(ServiceClass::standard));
  fill_wait(seconds(4));
  EXPECT_FALSE(weigh(ServiceClass::standard)) << "two thirds; the rest is for those with a reservation";
  fill_wait(seconds(1000));
  EXPECT_TRUE(weigh(ServiceClass::background)) << "zero: no limit";
}

TEST_F(AdmissionTest, WhatTheLoadDoesNotShowYetCountsToo) {
  AdmissionConfig wide = config();
  wide.queue_requests = 100;
  Admission admission(wide);
  load_.running = 2;
  fill_wait(milliseconds(29'400));
  std::vector<Permit> permits;
  const auto come = [&](ServiceClass service_class) {
    permits.push_back(std::move(*admission.enter({0, 0, permits.size()}, load_, now_)));
    return admission.weigh(permits.back(), service_class, 10, load_, now_).has_value();
  };
  // The two that run, as the load says.
  EXPECT_TRUE(come(ServiceClass::background));
  EXPECT_TRUE(come(ServiceClass::background));
  EXPECT_TRUE(come(ServiceClass::standard));
  EXPECT_TRUE(come(ServiceClass::standard));
  EXPECT_FALSE(come(ServiceClass::standard)) << "29.4 s and two halves";
  permits.pop_back();
  load_.waiting[1] = 2;
  EXPECT_TRUE(come(ServiceClass::standard)) << "the load knows them now";
}

TEST_F(AdmissionTest, ABusyTenantWaitsForItself) {
  load_.running = 2;
  load_.tenants = 1;
  load_.of_tenants[0].tenant = 7;
  load_.of_tenants[0].wait.of_short.fill(seconds(100));
  load_.of_tenants[0].wait.of_long.fill(seconds(100));
  const auto weigh = [&](std::uint32_t tenant) {
    auto permit = std::move(*enter(1, tenant));
    return admission_.weigh(permit, ServiceClass::standard, 10, load_, now_).has_value();
  };
  EXPECT_FALSE(weigh(7));
  EXPECT_TRUE(weigh(8));
}

TEST_F(AdmissionTest, ALongPromptIsForecastAsOne) {
  load_.running = 2;
  load_.wait.of_short.fill(seconds(1));
  load_.wait.of_long.fill(seconds(61));
  const auto weigh = [&](TokenCount tokens) {
    auto permit = std::move(*enter(1));
    return admission_.weigh(permit, ServiceClass::standard, tokens, load_, now_).has_value();
  };
  EXPECT_TRUE(weigh(32));
  EXPECT_TRUE(weigh(400));
  EXPECT_FALSE(weigh(600)) << "35 s";
  EXPECT_FALSE(weigh(9000));
}

TEST_F(AdmissionTest, ThoseThatComeTogetherShareTheRoomThatThereIs) {
  AdmissionConfig wide = config();
  wide.queue_requests = 100;
  wide.queue_wait.fill(milliseconds(150));
  Admission admission(wide);
  load_.running = 2;
  load_.room.fill(3);
  std::vector<Permit> permits;
  const auto come = [&] {
    permits.push_back(std::move(*admission.enter({0, 0, permits.size()}, load_, now_)));
    return admission.weigh(permits.back(), ServiceClass::interactive, 10, load_, now_).has_value();
  };
  EXPECT_TRUE(come());
  EXPECT_TRUE(come()) << "the load knows of two";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(come()) << "others would give up their slots";
  EXPECT_FALSE(come()) << "half a second until the next";
}

TEST_F(AdmissionTest, TooManyTokensAreRefusedUnlessNothingElseWaits) {
  AdmissionConfig small = config();
  small.queue_tokens = 1000;
  Admission admission(small);
  load_.running = 2;
  auto huge = std::move(*admission.enter({0, 0, 1}, load_, now_));
  EXPECT_TRUE(admission.weigh(huge, ServiceClass::standard, 5000, load_, now_));
  load_.waiting[1] = 1;
  load_.waiting_tokens = 900;
  auto small_one = std::move(*admission.enter({0, 0, 2}, load_, now_));
  const auto weighed = admission.weigh(small_one, ServiceClass::standard, 200, load_, now_);
  ASSERT_FALSE(weighed);
  EXPECT_GT(weighed.error().retry_after, Duration::zero());
}

TEST_F(AdmissionTest, AnEstimateRefusesNoRequest) {
  AdmissionConfig roomy = config();
  roomy.queue_requests = 100;
  roomy.queue_wait.fill(seconds(1));
  Admission admission(roomy);
  load_ = Load();
  std::vector<Permit> permits;
  for (RequestHash i = 0; i < 50; ++i) {
    permits.push_back(std::move(*admission.enter({0, 0, i}, load_, now_)));
    EXPECT_TRUE(admission.weigh(permits.back(), ServiceClass::interactive, 10, load_, now_)) << "number " << i;
  }
}

TEST_F(AdmissionTest, BeforeAnythingHasEndedTheTimeIsAnEstimate) {
  load_ = Load();
  fill();
  EXPECT_GE(refused(1), milliseconds(500));
  EXPECT_LE(refused(2), seconds(5));
}

}  // namespace
}  // namespace chasqui
