#include "base/control_group.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace chasqui {
namespace {

class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() { std::filesystem::create_directories(root()); }
  ~ControlGroupTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::filesystem::path root() const { return folder_ / "fs"; }
  ControlGroup look() const { return look_at_control_group(folder_ / "own", root()); }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("chasqui-group-" + std::to_string(::getpid()));
};

TEST(ControlGroupNumbers, AreReadAndNoLimitIsNone) {
  EXPECT_DOUBLE_EQ(read_cpu_max("150000 100000\n").value(), 1.5);
  EXPECT_FALSE(read_cpu_max("max 100000\n").has_value());
  EXPECT_FALSE(read_cpu_max("").has_value());
  EXPECT_FALSE(read_cpu_max("5 0").has_value());
  EXPECT_EQ(read_byte_limit("1024\n"), 1024u);
  EXPECT_FALSE(read_byte_limit("max\n").has_value());
  EXPECT_FALSE(read_byte_limit("9223372036854771712").has_value()) << "no limit, in the first version of groups";
}

TEST_F(ControlGroupTest, WithoutFilesLimitsNothing) {
  const ControlGroup group = look();
  EXPECT_FALSE(group.limit_bytes);
  EXPECT_FALSE(group.used_bytes);
  EXPECT_FALSE(group.cores);
}

TEST_F(ControlGroupTest, HasTheLeastLimitOfTheGroupsAboveIt) {
  write("own", "0::/pod/server\n");
  write("fs/pod/memory.max", "1000\n");
  write("fs/pod/memory.current", "700\n");
  write("fs/pod/cpu.max", "200000 100000\n");
  write("fs/pod/server/memory.max", "max\n");
  write("fs/pod/server/cpu.max", "max 100000\n");
  const ControlGroup group = look();
  EXPECT_EQ(group.limit_bytes, 1000u);
  EXPECT_EQ(group.used_bytes, 700u);
  EXPECT_EQ(group.cores, 2.0);
}

TEST_F(ControlGroupTest, DoesNotCountThePagesOfFilesAsUsed) {
  write("own", "0::/\n");
  write("fs/memory.max", "1000\n");
  write("fs/memory.current", "700\n");
  write("fs/memory.stat", "anon 100\nfile 600\ninactive_file 150\nactive_file 400\nactive_file_more 7\n");
  EXPECT_EQ(look().used_bytes, 150u);
}

TEST_F(ControlGroupTest, OfTheFirstVersionIsReadAsWell) {
  write("own", "5:memory:/a\n");
  write("fs/memory/memory.limit_in_bytes", "1000\n");
  write("fs/memory/memory.usage_in_bytes", "700\n");
  write("fs/memory/memory.stat", "active_file 1\ntotal_inactive_file 200\ntotal_active_file 100\n");
  write("fs/cpu/cpu.cfs_quota_us", "150000\n");
  write("fs/cpu/cpu.cfs_period_us", "100000\n");
  const ControlGroup group = look();
  EXPECT_EQ(group.limit_bytes, 1000u);
  EXPECT_EQ(group.used_bytes, 400u);
  EXPECT_EQ(group.cores, 1.5);
}

}  // namespace
}  // namespace chasqui
