#include "base/thread_name.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

namespace chasqui {
namespace {

TEST(ThreadName, IsCutAndBelongsToTheThreadAlone) {
  std::array<char, 16> own{};
  ::pthread_getname_np(::pthread_self(), own.data(), own.size());
  std::array<char, 16> name{};
  std::thread([&name] {
    name_this_thread("worker-with-a-long-name");
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  }).join();
  EXPECT_STREQ(name.data(), "worker-with-a-l");
  std::array<char, 16> after{};
  ::pthread_getname_np(::pthread_self(), after.data(), after.size());
  EXPECT_EQ(after, own);
}

}  // namespace
}  // namespace chasqui
