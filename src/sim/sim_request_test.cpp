#include "sim/sim_request.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

// A record leads from its id to itself until its end, so that an event after the end finds nothing.
TEST(SimRequestTable, ForgetsTheEnded) {
  SimRequestTable lives;
  SimRequest& life = lives.take();
  life.serial = 1;
  const RequestId id = lives.new_id(life);
  EXPECT_EQ(lives.find(id), nullptr) << "not accepted yet";
  life.request = test_request(id.value, 3, 2);
  life.accepted = true;
  EXPECT_EQ(lives.find(id), &life);
  lives.give_back(life);
  EXPECT_EQ(lives.find(id), nullptr);

  SimRequest& next = lives.take();
  EXPECT_EQ(&next, &life) << "records are used again";
  next.serial = 2;
  const RequestId next_id = lives.new_id(next);
  EXPECT_LT(id, next_id);
  next.request = test_request(next_id.value, 3, 2);
  next.accepted = true;
  EXPECT_EQ(lives.find(id), nullptr) << "two terminals: the second one is an event of no request";
  EXPECT_EQ(lives.living(), 1u);
}

}  // namespace
}  // namespace chasqui
