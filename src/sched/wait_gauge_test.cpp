#include "sched/wait_gauge.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class WaitGaugeTest : public ::testing::Test {
 protected:
  RequestId arrives(Duration predicted, ServiceClass service_class = ServiceClass::standard) {
    Request request;
    request.id = RequestId{++ids_};
    request.service_class = service_class;
    gauge_.arrived(request, predicted);
    return request.id;
  }
  void served(Duration predicted, Duration waited, int times) {
    for (int i = 0; i < times; ++i) gauge_.waited(arrives(predicted), waited, true);
  }
  Duration excess() const { return gauge_.excess(ServiceClass::standard); }

  WaitGauge gauge_;
  std::uint64_t ids_ = 0;
};

TEST_F(WaitGaugeTest, NothingIsAddedToWhatWasPredictedRight) {
  EXPECT_EQ(excess(), Duration::zero());
  served(seconds(2), seconds(2), 10);
  EXPECT_EQ(excess(), Duration::zero());
  served(seconds(2), seconds(1), 10);
  EXPECT_EQ(excess(), Duration::zero()) << "early is not held against the next";
}

TEST_F(WaitGaugeTest, NearlyAllWaitNoLongerThanItSays) {
  served(seconds(1), seconds(1), 57);
  served(seconds(1), seconds(4), 7);
  EXPECT_EQ(excess(), seconds(3)) << "one of ten is late";
}

TEST_F(WaitGaugeTest, OneInFiftyDoesNotDecide) {
  served(seconds(1), seconds(2), 63);
  served(seconds(1), seconds(30), 1);
  EXPECT_EQ(excess(), seconds(1));
}

TEST_F(WaitGaugeTest, ForgetsWhatIsLongAgo) {
  served(seconds(1), seconds(9), 64);
  served(seconds(1), seconds(2), 64);
  EXPECT_EQ(excess(), seconds(1));
}

TEST_F(WaitGaugeTest, WhoStillWaitsForTooLongCountsOnceAndAtOnce) {
  const RequestId id = arrives(seconds(1));
  gauge_.waited(id, milliseconds(900), false);
  EXPECT_EQ(excess(), Duration::zero());
  gauge_.waited(id, seconds(6), false);
  EXPECT_EQ(excess(), seconds(5));
  served(seconds(1), seconds(1), 63);
  gauge_.waited(id, seconds(60), true);
  EXPECT_EQ(excess(), Duration::zero());
}

TEST_F(WaitGaugeTest, ClassesAreApartAndThoseWhoLeftSayNothing) {
  gauge_.waited(arrives(seconds(1), ServiceClass::background), seconds(9), true);
  EXPECT_EQ(excess(), Duration::zero());
  EXPECT_EQ(gauge_.excess(ServiceClass::background), seconds(8));
  const RequestId gone = arrives(seconds(1));
  gauge_.left(gone);
  gauge_.waited(gone, seconds(9), true);
  EXPECT_EQ(excess(), Duration::zero());
}

}  // namespace
}  // namespace chasqui
