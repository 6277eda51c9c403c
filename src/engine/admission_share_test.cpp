// What one tenant that fills the queue leaves for others.
#include <vector>

#include <gtest/gtest.h>

#include "engine/admission.h"

namespace chasqui {
namespace {

// Two slots and fourteen places to wait, and two more for tenants that have fewer than two.
class AdmissionShareTest : public ::testing::Test {
 protected:
  AdmissionShareTest() {
    load_.slots = 2;
    load_.slot_time = seconds(1);
  }

  static AdmissionConfig config() {
    AdmissionConfig config;
    config.slots = 2;
    config.queue_requests = 14;
    config.queue_tokens = 800;
    return config;
  }
  Result<Permit> enter(std::uint32_t tenant) { return door_.enter({tenant, 0, ++hash_}, load_, now_); }
  void flood(std::uint32_t tenant) {
    for (auto permit = enter(tenant); permit; permit = enter(tenant)) permits_.push_back(std::move(*permit));
  }

  Admission door_{config()};
  Load load_;
  TimePoint now_{seconds(1000)};
  RequestHash hash_ = 0;
  std::vector<Permit> permits_;
};

TEST_F(AdmissionShareTest, OneTenantFillsTheQueueForItselfOnly) {
  flood(1);
  EXPECT_EQ(permits_.size(), 16u) << "alone it has all places";
  const auto one = enter(2);
  const auto two = enter(2);
  EXPECT_TRUE(one && two) << "an eighth is there for those who have less";
  EXPECT_FALSE(enter(2));
  EXPECT_FALSE(enter(3)) << "and no more than an eighth";
}

TEST_F(AdmissionShareTest, ReservationsOfOneTenantHoldNoPlaceOfTheFew) {
  flood(1);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(enter(1));
  now_ += seconds(30);
  permits_.resize(12);  // all that frees up is held for those who were told to come now
  EXPECT_FALSE(enter(1));
  EXPECT_TRUE(enter(2));
}

TEST_F(AdmissionShareTest, SeveralAnswersForATenantThatHasFewFitAmongTheirs) {
  flood(1);
  auto two = std::move(*enter(2));
  EXPECT_TRUE(door_.weigh(two, ServiceClass::standard, 10, load_, now_, 2));
  two.release();
  auto three = std::move(*enter(2));
  EXPECT_FALSE(door_.weigh(three, ServiceClass::standard, 10, load_, now_, 3));
}

TEST_F(AdmissionShareTest, OneTenantsPromptsLeaveTokensForOthers) {
  load_.running = 2;  // of tenant 9
  const auto weighed = [&](std::uint32_t tenant, TokenCount tokens) {
    auto permit = std::move(*enter(tenant));
    const bool in = door_.weigh(permit, ServiceClass::standard, tokens, load_, now_).has_value();
    if (in) permits_.push_back(std::move(permit));
    return in;
  };
  EXPECT_TRUE(weighed(9, 0) && weighed(9, 0));
  EXPECT_TRUE(weighed(1, 500) && weighed(1, 300));
  EXPECT_FALSE(weighed(1, 10));
  EXPECT_TRUE(weighed(2, 60));
  EXPECT_FALSE(weighed(2, 60)) << "its share is a hundred";
  EXPECT_TRUE(weighed(2, 40));
  EXPECT_FALSE(weighed(3, 10)) << "and no more than an eighth";
}

}  // namespace
}  // namespace chasqui
