#include "cli/machine.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

TEST(Machine, MemoryIsFoundByTheWholeName) {
  constexpr std::string_view text = "MemTotal:       16 kB\nMemAvailable:    4 kB\nMem: 3 kB\n";
  EXPECT_EQ(find_meminfo(text, "MemAvailable"), 4096u);
  EXPECT_EQ(find_meminfo(text, "Mem"), 3072u);
  EXPECT_FALSE(find_meminfo(text, "Swap").has_value());
}

TEST(Machine, LimitsOfGroupsAreReadAndNoLimitIsNone) {
  EXPECT_DOUBLE_EQ(read_cpu_max("150000 100000\n").value(), 1.5);
  EXPECT_FALSE(read_cpu_max("max 100000\n").has_value());
  EXPECT_FALSE(read_cpu_max("").has_value());
  EXPECT_FALSE(read_cpu_max("5 0").has_value());
  EXPECT_EQ(read_byte_limit("1024\n"), 1024u);
  EXPECT_FALSE(read_byte_limit("max\n").has_value());
  EXPECT_FALSE(read_byte_limit("9223372036854771712").has_value()) << "no limit, in the first version of groups";
}

TEST(Machine, WhatIsFreeIsTheLeastOfMachineAndGroup) {
  Machine machine;
  machine.available_bytes = 100;
  EXPECT_EQ(machine.free_bytes(), 100u);
  machine.group_limit_bytes = 80;
  machine.group_used_bytes = 30;
  EXPECT_EQ(machine.free_bytes(), 50u);
  machine.group_used_bytes = 90;
  EXPECT_EQ(machine.free_bytes(), 0u);
}

TEST(Machine, ThisOneHasMemoryAndCores) {
  const Machine machine = look_at_machine();
  EXPECT_GT(machine.memory_bytes, 0u);
  EXPECT_LE(machine.available_bytes, machine.memory_bytes);
  EXPECT_GE(machine.cores, 1);
}

TEST(Bytes, AreSaidInWords) {
  EXPECT_EQ(bytes_in_words(0), "0 B");
  EXPECT_EQ(bytes_in_words(1536), "1.5 KiB");
  EXPECT_EQ(bytes_in_words(std::uint64_t{300} << 20), "300 MiB");
  EXPECT_EQ(bytes_in_words(std::uint64_t{5} << 29), "2.5 GiB");
}

}  // namespace
}  // namespace chasqui::cli
