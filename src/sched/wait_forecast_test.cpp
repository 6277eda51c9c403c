#include "sched/wait_forecast.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class WaitForecastTest : public ::testing::Test {
 protected:
  RequestId arrives(Duration predicted, ServiceClass service_class = ServiceClass::standard) {
    Request request;
    request.id = RequestId{++ids_};
    request.service_class = service_class;
    forecast_.arrived(request, predicted);
    return request.id;
  }
  void served(Duration predicted, Duration waited, int times) {
    for (int i = 0; i < times; ++i) forecast_.waited(arrives(predicted), waited, 0, true, now_);
  }
  Duration excess() const { return forecast_.excess(ServiceClass::standard, now_); }

  WaitForecast forecast_;
  TimePoint now_{seconds(100)};
  std::uint64_t ids_ = 0;
};

TEST_F(WaitForecastTest, NothingIsAddedToWhatWasPredictedRight) {
  EXPECT_EQ(excess(), Duration::zero());
  served(seconds(2), seconds(2), 10);
  EXPECT_EQ(excess(), Duration::zero());
  served(seconds(2), seconds(1), 10);
  EXPECT_EQ(excess(), Duration::zero()) << "early is not held against the next";
}

TEST_F(WaitForecastTest, NearlyAllWaitNoLongerThanItSays) {
  served(seconds(1), seconds(1), 57);
  served(seconds(1), seconds(4), 7);
  EXPECT_EQ(excess(), seconds(3)) << "one of ten is late";
}

TEST_F(WaitForecastTest, OneInFiftyDoesNotDecide) {
  served(seconds(1), seconds(2), 63);
  served(seconds(1), seconds(30), 1);
  EXPECT_EQ(excess(), seconds(1));
}

TEST_F(WaitForecastTest, ForgetsWhatIsLongAgo) {
  served(seconds(1), seconds(9), 64);
  served(seconds(1), seconds(2), 64);
  EXPECT_EQ(excess(), seconds(1));
}

TEST_F(WaitForecastTest, WhoStillWaitsForTooLongCountsOnceAndAtOnce) {
  const RequestId id = arrives(seconds(1));
  forecast_.waited(id, milliseconds(900), 0, false, now_);
  EXPECT_EQ(excess(), Duration::zero());
  forecast_.waited(id, seconds(6), 0, false, now_);
  EXPECT_EQ(excess(), seconds(5));
  served(seconds(1), seconds(1), 63);
  forecast_.waited(id, seconds(60), 0, true, now_);
  EXPECT_EQ(excess(), Duration::zero());
}

TEST_F(WaitForecastTest, ClassesAreApartAndThoseWhoLeftSayNothing) {
  forecast_.waited(arrives(seconds(1), ServiceClass::background), seconds(9), 0, true, now_);
  EXPECT_EQ(excess(), Duration::zero());
  EXPECT_EQ(forecast_.excess(ServiceClass::background, now_), seconds(8));
  const RequestId gone = arrives(seconds(1));
  forecast_.left(gone);
  forecast_.waited(gone, seconds(9), 0, true, now_);
  EXPECT_EQ(excess(), Duration::zero());
}

TEST_F(WaitForecastTest, AnUnconfirmedExcessFades) {
  served(seconds(1), seconds(9), 64);
  now_ += seconds(3);
  EXPECT_EQ(excess(), seconds(4));
  now_ += seconds(60);
  EXPECT_LT(excess(), milliseconds(1));
}

TEST_F(WaitForecastTest, WhatItsOwnPromptTakesIsNotAWait) {
  for (int i = 0; i < 100; ++i) forecast_.read(10, milliseconds(200), 0.001);
  EXPECT_NEAR(forecast_.row_seconds(), 0.02, 1e-6) << "beside others";
  forecast_.waited(arrives(seconds(1)), seconds(21), 1000, true, now_);
  EXPECT_EQ(excess(), Duration::zero());
  forecast_.waited(arrives(seconds(1)), seconds(25), 1000, true, now_);
  EXPECT_NEAR(to_seconds(excess()), 4, 0.01);
}

TEST_F(WaitForecastTest, APromptIsNeverReadFasterThanAlone) {
  forecast_.read(100, milliseconds(1), 0.003);
  EXPECT_NEAR(forecast_.row_seconds(), 0.003, 1e-9);
}

TEST_F(WaitForecastTest, SlotsAreHeldAsLongAsTheyWereOfLate) {
  forecast_.slot_held(seconds(2));
  EXPECT_EQ(forecast_.slot_seconds(), 2);
  for (int i = 0; i < 100; ++i) forecast_.slot_held(seconds(5));
  EXPECT_NEAR(forecast_.slot_seconds(), 5, 0.01);
}

// Of a machine on which a decode step takes minutes, in which nothing of a prompt was read.
TEST_F(WaitForecastTest, ThePaceOfPromptsIsNotThatOfStepsInWhichNoneWasRead) {
  forecast_.read(100, seconds(10), 0.1);
  for (int i = 0; i < 5; ++i) forecast_.read(0, seconds(200), 0.1);
  EXPECT_LE(forecast_.row_seconds(), 100);
}

}  // namespace
}  // namespace chasqui
