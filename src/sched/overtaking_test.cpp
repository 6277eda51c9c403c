#include "sched/overtaking.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

class OvertakingTest : public testing::Test {
 protected:
  void arrives(std::uint64_t id, ServiceClass service_class = ServiceClass::standard, std::uint32_t tenant = 0) {
    RequestDraft draft;
    draft.prompt = test_prompt(10, id);
    draft.service_class = service_class;
    draft.tenant.id = tenant;
    const TimePoint arrival{milliseconds(static_cast<int>(id))};
    queue.push(std::make_unique<Sequence>(test_request(id, std::move(draft), test_limits(), arrival)));
  }
  void starts(std::uint64_t id) { overtaking.starts(*queue.remove(RequestId{id}), queue); }
  bool starved(std::uint64_t id) const {
    for (const auto& sequence : queue.all()) {
      if (sequence->id().value == id) return overtaking.is_starved(*sequence);
    }
    return false;
  }

  WaitQueue queue;
  Overtaking overtaking;
};

TEST_F(OvertakingTest, OneIsDueWhenSoManyYoungerOnesOfItsOwnKindHavePassedIt) {
  arrives(1);
  for (std::uint64_t id = 2; id < 2 + Overtaking::kPassedMost; ++id) {
    EXPECT_FALSE(starved(1));
    arrives(id);
    starts(id);
  }
  EXPECT_TRUE(starved(1));
  starts(1);
  EXPECT_FALSE(overtaking.any());
}

TEST_F(OvertakingTest, OlderOnesPassNothing) {
  for (std::uint64_t id = 1; id <= 2 * Overtaking::kPassedMost; ++id) arrives(id);
  arrives(1000);
  for (std::uint64_t id = 1; id <= 2 * Overtaking::kPassedMost; ++id) starts(id);
  EXPECT_FALSE(starved(1000));
}

// A tenant that floods the queue would otherwise be due with all that it has there.
TEST_F(OvertakingTest, OfATenantAndClassOnlyTheOldestIsDueForWhatOthersHad) {
  for (std::uint64_t id = 1; id <= 10; ++id) arrives(id, ServiceClass::background, 1);
  for (std::uint64_t id = 11; id < 11 + Overtaking::kPassedMost; ++id) {
    arrives(id, ServiceClass::interactive, 2);
    starts(id);
  }
  EXPECT_TRUE(starved(1));
  for (std::uint64_t id = 2; id <= 10; ++id) EXPECT_FALSE(starved(id)) << id;
  starts(1);
  EXPECT_FALSE(starved(2)) << "it begins anew";
}

}  // namespace
}  // namespace chasqui
