#include "bench/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace chasqui::bench {
namespace {

TEST(ProcessUsage, ReadsPastTheName) {
  EXPECT_EQ(parse_cpu_s("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0", 100), 2.0);
  EXPECT_FALSE(parse_cpu_s("", 100).has_value());
  EXPECT_FALSE(parse_cpu_s("7 (a) S 1 2", 100).has_value());
}

TEST(ProcessUsage, ReadsStatusLines) {
  const std::string_view status = "Name:\tThreads\nVmHWM:\t  123 kB\nThreads:\t4\n";
  EXPECT_EQ(parse_status(status, "VmHWM"), 123);
  EXPECT_EQ(parse_status(status, "Threads"), 4);
  EXPECT_FALSE(parse_status(status, "VmRSS").has_value());
}

TEST(ProcessUsage, ReadsProcesses) {
  const auto usage = read_process(getpid());
  ASSERT_TRUE(usage.has_value());
  EXPECT_GE(usage->threads, 1);
  EXPECT_GT(usage->rss_bytes, 0);
  EXPECT_GE(own_cpu_s(), 0);
  EXPECT_FALSE(read_process(1LL << 30).has_value());
}

}  // namespace
}  // namespace chasqui::bench
