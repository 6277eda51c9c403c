// URLs of --batch-queue: which are good, and that no message has a password.
#include "store/line_queue_choice.h"

#include <gtest/gtest.h>

#include "store/nats_line_queue.h"

namespace chasqui::store {
namespace {

TEST(LineQueueChoice, RefusesWhatIsNoQueue) {
  for (const char* url : {"", "queue", "http://host", "redis://", "redis://host/x", "redis://secret@host", "nats://",
                          "nats://host/stream", "nats://:secret@host", "nats://host:0", "unix://socket"}) {
    const auto checked = check_line_queue(url);
    ASSERT_FALSE(checked) << url;
    EXPECT_EQ(checked.error().field, "--batch-queue");
    EXPECT_NE(checked.error().message.find("--batch-queue"), std::string::npos) << checked.error().message;
    EXPECT_EQ(checked.error().message.find("secret"), std::string::npos) << checked.error().message;
  }
}

TEST(LineQueueChoice, TakesRedisWithoutAskingIt) {
  EXPECT_TRUE(check_line_queue("redis://:password@nowhere.invalid:7000/2"));
  EXPECT_TRUE(check_line_queue("unix:///run/redis.sock"));
  const RealClock clock;
  EXPECT_EQ(make_line_queue("redis://:password@host:7000/2", clock)->shown(), "redis://host:7000/2");
}

TEST(NatsAddress, HasAPortOfItsOwn) {
  EXPECT_EQ(read_nats_address("nats://host")->shown(), "nats://host:4222");
  EXPECT_EQ(read_nats_address("nats://[::1]")->shown(), "nats://[::1]:4222");
  EXPECT_EQ(read_nats_address("nats://[::1]:6379")->shown(), "nats://[::1]:6379");
  const auto all = read_nats_address("nats://me:p%40ss@host:7000");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->user, "me");
  EXPECT_EQ(all->password, "p@ss");
  EXPECT_EQ(all->shown(), "nats://host:7000");
}

}  // namespace
}  // namespace chasqui::store
