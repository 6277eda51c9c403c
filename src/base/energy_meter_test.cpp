#include "base/energy_meter.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace chasqui {
namespace {

constexpr std::uint64_t kRange = 1'000'000'000;

// A folder like /sys/class/powercap: two packages, parts of one, and what is no package.
class EnergyMeterTest : public testing::Test {
 protected:
  EnergyMeterTest() {
    domain("intel-rapl:0", "package-0");
    domain("intel-rapl:0:0", "core");
    domain("intel-rapl:1", "package-1");
    domain("intel-rapl:2", "psys");
    write("intel-rapl/enabled", "1\n");
  }
  ~EnergyMeterTest() override { std::filesystem::remove_all(folder_); }

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
  std::unique_ptr<EnergyMeter> open() const { return EnergyMeter::open(folder_, TimePoint{}); }
  static TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("chasqui-energy-" + std::to_string(::getpid()));
};

TEST_F(EnergyMeterTest, IsThereOnlyWhereAPackageCanBeRead) {
  EXPECT_NE(open(), nullptr);
  EXPECT_EQ(EnergyMeter::open(folder_ / "nothing", TimePoint{}), nullptr);
  for (const char* const package : {"intel-rapl:0", "intel-rapl:1"})
    std::filesystem::remove(folder_ / package / "energy_uj");
  EXPECT_EQ(open(), nullptr);
  write("intel-rapl:1/energy_uj", "what is no number\n");
  EXPECT_EQ(open(), nullptr);
}

TEST_F(EnergyMeterTest, CountsPackagesAndNothingElse) {
  const auto meter = open();
  count("intel-rapl:0", 503'000'000);
  count("intel-rapl:0:0", 502'000'000);
  count("intel-rapl:1", 501'000'000);
  count("intel-rapl:2", 509'000'000);
  EXPECT_DOUBLE_EQ(meter->take(at(200)), 4);
  EXPECT_DOUBLE_EQ(meter->metrics().joules.value(), 4);
  count("intel-rapl:0", 504'500'000);
  EXPECT_DOUBLE_EQ(meter->take(at(400)), 1.5);
  EXPECT_DOUBLE_EQ(meter->metrics().joules.value(), 5.5);
}

TEST_F(EnergyMeterTest, ACounterThatBeginsAgainGoesOn) {
  const auto meter = open();
  count("intel-rapl:0", kRange - 1'000'000);
  EXPECT_DOUBLE_EQ(meter->take(at(200)), 499);
  count("intel-rapl:0", 2'000'000);
  EXPECT_DOUBLE_EQ(meter->take(at(400)), 3);
}

TEST_F(EnergyMeterTest, StepsBetweenTwoReadingsHaveTheirPart) {
  const auto meter = open();
  count("intel-rapl:0", 502'000'000);
  EXPECT_DOUBLE_EQ(meter->take(at(200)), 2);  // 10 W
  EXPECT_NEAR(meter->take(at(220)), 0.2, 1e-5);
  EXPECT_NEAR(meter->take(at(250)), 0.3, 1e-5);
  EXPECT_DOUBLE_EQ(meter->take(at(250)), 0);
  count("intel-rapl:0", 503'000'000);  // a second of the next 100 ms
  EXPECT_NEAR(meter->take(at(300)), 0.5, 1e-5) << "what was not taken yet";
  count("intel-rapl:0", 503'100'000);
  EXPECT_NEAR(meter->take(at(390)), 0.9, 1e-5) << "as if it went on so";
  EXPECT_DOUBLE_EQ(meter->take(at(400)), 0) << "until it is known that it was less";
  count("intel-rapl:0", 504'000'000);
  EXPECT_NEAR(meter->take(at(500)), 0.1, 1e-5) << "no energy is taken twice";
}

TEST_F(EnergyMeterTest, WhatAnIdleServerUsesIsNoRequests) {
  const auto meter = open();
  count("intel-rapl:0", 502'000'000);
  meter->take(at(200));
  count("intel-rapl:0", 600'000'000);
  meter->skip(at(100'000));
  EXPECT_DOUBLE_EQ(meter->metrics().joules.value(), 2);
  EXPECT_NEAR(meter->take(at(100'010)), 0.1, 1e-5) << "with the power of the requests before";
}

TEST_F(EnergyMeterTest, TheFirstStepsAreNotFree) {
  const auto meter = open();
  meter->skip(at(1000));
  count("intel-rapl:0", 500'050'000);
  EXPECT_DOUBLE_EQ(meter->take(at(1005)), 0.05) << "it is read earlier while the power is unknown";
  EXPECT_NEAR(meter->take(at(1010)), 0.05, 1e-5);
}

TEST_F(EnergyMeterTest, AFileThatVanishesIsLeftOut) {
  const auto meter = open();
  count("intel-rapl:0", 501'000'000);
  count("intel-rapl:1", 501'000'000);
  EXPECT_DOUBLE_EQ(meter->take(at(200)), 2);
  count("intel-rapl:1", 502'000'000);
  write("intel-rapl:0/energy_uj", "");  // as of a device that was taken out: what is open gives nothing any more
  EXPECT_DOUBLE_EQ(meter->take(at(400)), 1);
  EXPECT_TRUE(meter->tells());
  write("intel-rapl:1/energy_uj", "");
  EXPECT_DOUBLE_EQ(meter->take(at(600)), 0);
  EXPECT_FALSE(meter->tells());
  EXPECT_DOUBLE_EQ(meter->take(at(800)), 0);
  EXPECT_DOUBLE_EQ(meter->metrics().joules.value(), 3);
}

}  // namespace
}  // namespace chasqui
