#include "sim/progress_watch.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

class ProgressWatchTest : public testing::Test {
 protected:
  SimRequest& add(int second, ServiceClass service_class = ServiceClass::standard) {
    SimRequest& life = lives_.take();
    life.serial = ++serials_;
    life.plan.service_class = service_class;
    RequestDraft draft;
    draft.prompt = {1};
    life.request = test_request(serials_, std::move(draft), test_limits(), TimePoint{} + seconds(second));
    watch_.waits(life);
    return life;
  }
  void start(SimRequest& life) {
    life.has_started = true;
    watch_.starts(life);
  }

  Faults faults_;
  SimRequestTable lives_;
  ProgressWatch watch_{PatienceConfig{10, seconds(5), 3, seconds(1)}, 1, faults_};
  std::uint64_t serials_ = 0;
};

TEST_F(ProgressWatchTest, FindsARequestThatIsPassedTooOften) {
  add(0);
  start(add(0));  // of the same time: it passes no one
  for (int i = 1; i <= 3; ++i) start(add(i));
  EXPECT_FALSE(faults_.any());
  start(add(4));
  ASSERT_TRUE(faults_.any());
  EXPECT_NE(faults_.lines().front().find("passed by too many younger ones (request 1)"), std::string::npos);
}

// Three, and one for each of the two kinds that wait.
TEST_F(ProgressWatchTest, FindsAClassThatIsPassedOverTooOften) {
  add(0);
  for (int i = 1; i <= 5; ++i) start(add(i, ServiceClass::interactive));
  EXPECT_FALSE(faults_.any());
  start(add(1));  // of its own kind: it begins again
  for (int i = 1; i <= 5; ++i) start(add(i, ServiceClass::interactive));
  EXPECT_FALSE(faults_.any());
  start(add(6, ServiceClass::interactive));
  ASSERT_TRUE(faults_.any());
  EXPECT_NE(faults_.lines().front().find("passed over by too many younger others (request 1)"), std::string::npos);
}

TEST_F(ProgressWatchTest, WhoHasASlotIsNotPassed) {
  start(add(0));
  for (int i = 1; i <= 10; ++i) start(add(i));
  EXPECT_FALSE(faults_.any());
}

TEST_F(ProgressWatchTest, FindsADecodingSequenceWithoutRows) {
  SimRequest& life = add(0);
  SimRequest& other = add(0);
  for (std::uint64_t step = 1; step <= 30; ++step) {
    const TimePoint now = TimePoint{} + seconds(static_cast<int>(step));
    other.decoding = true;
    other.last_row_step = step;
    if (step == 1) {
      life.decoding = true;
      life.last_row_step = step;
      watch_.got_row(life, now);
    }
    watch_.got_row(other, now);
    watch_.step_done(step, now);
    EXPECT_EQ(faults_.any(), step > 11) << step;
  }
}

TEST_F(ProgressWatchTest, LetsThePreemptedSitOut) {
  SimRequest& life = add(0);
  life.decoding = true;
  life.last_row_step = 1;
  watch_.got_row(life, TimePoint{});
  life.decoding = false;
  watch_.step_done(1000, TimePoint{} + seconds(1000));
  EXPECT_FALSE(faults_.any());
}

// … and then again for as long as others, from when it has a slot.
TEST_F(ProgressWatchTest, CountsFromWhenThePreemptedGoesOn) {
  SimRequest& life = add(0);
  life.decoding = true;
  life.generated = 1;
  life.last_row_step = 1;
  watch_.got_row(life, TimePoint{});
  watch_.goes_on(life, 1000, TimePoint{} + seconds(1000));
  watch_.step_done(1005, TimePoint{} + seconds(1005));
  EXPECT_FALSE(faults_.any());
  watch_.step_done(1011, TimePoint{} + seconds(1011));
  EXPECT_TRUE(faults_.any());
}

TEST_F(ProgressWatchTest, FindsAStandstill) {
  watch_.stands_still(TimePoint{});
  watch_.stands_still(TimePoint{} + seconds(1));
  EXPECT_FALSE(faults_.any());
  watch_.moves_on();
  watch_.stands_still(TimePoint{} + seconds(9));
  EXPECT_FALSE(faults_.any());
  watch_.stands_still(TimePoint{} + seconds(11));
  EXPECT_TRUE(faults_.any());
}

TEST_F(ProgressWatchTest, FindsPromptsThatAreReadForEver) {
  ProgressWatch watch({.silent_rows = 100}, 1, faults_);
  watch.computed(100, false);
  watch.computed(100, true);
  watch.computed(100, false);
  SimRequest& life = add(0);
  life.rows = 60;
  watch_.ended(life);
  watch.ended(life);
  watch.computed(60, false);
  EXPECT_FALSE(faults_.any()) << "rows of those that have ended lead to nothing";
  watch.computed(1, false);
  EXPECT_TRUE(faults_.any());
}

TEST_F(ProgressWatchTest, CountsWhoCompetes) {
  EXPECT_EQ(watch_.competitors(1), 0u);
  SimRequest& life = add(0);
  add(0);
  EXPECT_EQ(watch_.competitors(1), 1u);
  EXPECT_TRUE(watch_.waiting(0, 1));
  EXPECT_FALSE(watch_.waiting(0, 0));
  watch_.ended(life);
  EXPECT_TRUE(watch_.waiting(0, 1));
}

}  // namespace
}  // namespace chasqui
