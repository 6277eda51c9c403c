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

TEST(Machine, WhatThereIsIsTheLeastOfMachineAndGroup) {
  Machine machine;
  machine.memory_bytes = 200;
  machine.available_bytes = 100;
  EXPECT_EQ(machine.free_bytes(), 100u);
  EXPECT_EQ(machine.usable_bytes(), 200u);
  machine.group_limit_bytes = 80;
  EXPECT_EQ(machine.usable_bytes(), 80u);
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
