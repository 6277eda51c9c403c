#include "base/rapl_energy.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace chasqui {
namespace {

constexpr std::uint64_t kRange = 1'000'000'000;

// A folder like /sys/class/powercap: two packages, parts of one, and what is no package.
class RaplEnergyTest : public testing::Test {
 protected:
  RaplEnergyTest() {
    domain("intel-rapl:0", "package-0");
    domain("intel-rapl:0:0", "core");
    domain("intel-rapl:1", "package-1");
    domain("intel-rapl:2", "psys");
    write("intel-rapl/enabled", "1\n");
  }
  ~RaplEnergyTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;  // in place: the meter has it open
  }
  void count(const std::string& domain, std::uint64_t microjoules) const {
    write(domain + "/energy_uj", std::to_string(microjoules) + "\n");
  }
  void domain(const std::string& folder, const std::string& name) const {
    write(folder + "/name", name + "\n");
    write(folder + "/max_energy_range_uj", std::to_string(kRange) + "\n");
    count(folder, 500'000'000);
  }
  std::unique_ptr<RaplEnergy> open() const { return RaplEnergy::open(folder_, TimePoint{}); }
  // Joules.
  static double take(RaplEnergy& energy, TimePoint now) { return static_cast<double>(energy.take(now, true)) * 1e-6; }
  static TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("chasqui-energy-" + std::to_string(::getpid()));
};

TEST_F(RaplEnergyTest, IsThereOnlyWhereAPackageCanBeRead) {
  EXPECT_NE(open(), nullptr);
  EXPECT_EQ(RaplEnergy::open(folder_ / "nothing", TimePoint{}), nullptr);
  for (const char* const package : {"intel-rapl:0", "intel-rapl:1"})
    std::filesystem::remove(folder_ / package / "energy_uj");
  EXPECT_EQ(open(), nullptr);
  write("intel-rapl:1/energy_uj", "what is no number\n");
  EXPECT_EQ(open(), nullptr);
}

TEST_F(RaplEnergyTest, CountsPackagesAndNothingElse) {
  const auto energy = open();
  count("intel-rapl:0", 503'000'000);
  count("intel-rapl:0:0", 502'000'000);
  count("intel-rapl:1", 501'000'000);
  count("intel-rapl:2", 509'000'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(200)), 4);
  count("intel-rapl:0", 504'500'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(400)), 1.5);
}

TEST_F(RaplEnergyTest, ACounterThatBeginsAgainGoesOn) {
  const auto energy = open();
  count("intel-rapl:0", kRange - 1'000'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(200)), 499);
  count("intel-rapl:0", 2'000'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(400)), 3);
}

TEST_F(RaplEnergyTest, StepsBetweenTwoReadingsHaveTheirPart) {
  const auto energy = open();
  count("intel-rapl:0", 502'000'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(200)), 2);  // 10 W
  EXPECT_NEAR(take(*energy, at(220)), 0.2, 1e-5);
  EXPECT_NEAR(take(*energy, at(250)), 0.3, 1e-5);
  EXPECT_DOUBLE_EQ(take(*energy, at(250)), 0);
  count("intel-rapl:0", 503'000'000);  // a second of the next 100 ms
  EXPECT_NEAR(take(*energy, at(300)), 0.5, 1e-5) << "what was not taken yet";
  count("intel-rapl:0", 503'100'000);
  EXPECT_NEAR(take(*energy, at(390)), 0.9, 1e-5) << "as if it went on so";
  EXPECT_DOUBLE_EQ(take(*energy, at(400)), 0) << "until it is known that it was less";
  count("intel-rapl:0", 504'000'000);
  EXPECT_NEAR(take(*energy, at(500)), 0.1, 1e-5) << "no energy is taken twice";
}

TEST_F(RaplEnergyTest, WhatAnIdleServerUsesIsNoRequests) {
  const auto energy = open();
  count("intel-rapl:0", 502'000'000);
  take(*energy, at(200));
  count("intel-rapl:0", 600'000'000);
  energy->take(at(100'000), false);
  EXPECT_NEAR(take(*energy, at(100'010)), 0.1, 1e-5) << "with the power of the requests before";
}

TEST_F(RaplEnergyTest, TheFirstStepsAreNotFree) {
  const auto energy = open();
  energy->take(at(1000), false);
  count("intel-rapl:0", 500'050'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(1005)), 0.05) << "it is read earlier while the power is unknown";
  EXPECT_NEAR(take(*energy, at(1010)), 0.05, 1e-5);
}

TEST_F(RaplEnergyTest, AFileThatVanishesIsLeftOut) {
  const auto energy = open();
  count("intel-rapl:0", 501'000'000);
  count("intel-rapl:1", 501'000'000);
  EXPECT_DOUBLE_EQ(take(*energy, at(200)), 2);
  count("intel-rapl:1", 502'000'000);
  write("intel-rapl:0/energy_uj", "");  // as of a device that was taken out: what is open gives nothing any more
  EXPECT_DOUBLE_EQ(take(*energy, at(400)), 1);
  EXPECT_TRUE(energy->tells());
  write("intel-rapl:1/energy_uj", "");
  EXPECT_DOUBLE_EQ(take(*energy, at(600)), 0);
  EXPECT_FALSE(energy->tells());
  EXPECT_DOUBLE_EQ(take(*energy, at(800)), 0);
}

}  // namespace
}  // namespace chasqui
