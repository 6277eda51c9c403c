#include "store/redis_connection.h"

#include <gtest/gtest.h>

namespace chasqui::store {
namespace {

TEST(RedisAddress, ReadsHostPortDatabaseAndLogin) {
  const auto all = read_redis_address("redis://worker:p%40ss:word@[::1]:7000/3");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->user, "worker");
  EXPECT_EQ(all->password, "p@ss:word");
  EXPECT_EQ(all->host, "::1");
  EXPECT_EQ(all->port, 7000);
  EXPECT_EQ(all->database, 3);
  EXPECT_EQ(all->shown(), "redis://[::1]:7000/3");  // no password in a message

  const auto least = read_redis_address("redis://store");
  ASSERT_TRUE(least);
  EXPECT_EQ(least->shown(), "redis://store:6379/0");
  EXPECT_EQ(read_redis_address("unix:///run/redis.sock")->path, "/run/redis.sock");
}

TEST(RedisAddress, RefusesWhatIsNone) {
  for (const char* url : {"", "store", "http://store", "redis://", "redis://:80", "redis://store:0", "redis://store:x",
                          "redis://store:65536", "redis://store/x", "redis://secret@store", "redis://:a%4@store",
                          "redis://[::1", "unix://socket"}) {
    const auto read = read_redis_address(url);
    ASSERT_FALSE(read) << url;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_request);
    EXPECT_EQ(read.error().message.find("secret"), std::string::npos);
  }
}

TEST(RedisConnection, SaysThatNoServerAnswers) {
  RedisConnection connection(*read_redis_address("unix:///nonexistent/redis.sock"), seconds(1));
  const auto answer = connection.run_one({"PING"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_NE(answer.error().message.find("unix:///nonexistent/redis.sock"), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace chasqui::store
