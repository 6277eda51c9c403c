#include "base/nvml_energy.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/fake_nvml.h"

namespace chasqui {
namespace {

constexpr const char* kFirst = "0000:01:00.0";
constexpr const char* kSecond = "0000:c1:00.0";
constexpr std::int64_t kJoule = 1'000'000;

class NvmlEnergyTest : public testing::Test {
 protected:
  static TimePoint at(int ms) { return TimePoint{} + milliseconds(ms); }
  std::string why_not(const std::string& library, const std::string& address = kFirst) {
    NvmlEnergy energy(at(0), library);
    const auto counts = energy.count(address);
    EXPECT_FALSE(energy.tells());
    EXPECT_EQ(energy.take(at(100), true), 0);
    return counts ? "it counts" : counts.error().message;
  }
  bool is_signalled() {
    pollfd door{energy_.wakeup().fd(), POLLIN, 0};
    const bool out = ::poll(&door, 1, 0) == 1;
    energy_.wakeup().acknowledge();
    return out;
  }
  // A reading of what requests used.
  std::int64_t read_and_take(int ms) {
    energy_.read(at(ms), true);
    return energy_.take(at(ms), true);
  }

  FakeNvml& nvml_ = FakeNvml::reset();
  NvmlEnergy energy_{at(0), fake_nvml_path("good")};
};

TEST_F(NvmlEnergyTest, SaysWhatIsMissingAndWhatToInstall) {
  const std::string none = why_not("/nowhere/libnvidia-ml.so.1");
  EXPECT_NE(none.find("there is no NVML on this machine (/nowhere/libnvidia-ml.so.1"), std::string::npos) << none;
  EXPECT_NE(none.find("NVIDIA_DRIVER_CAPABILITIES=utility"), std::string::npos) << none;
  EXPECT_EQ(
      why_not(fake_nvml_path("old")),
      "the NVML of this machine is too old, it has no nvmlDeviceGetTotalEnergyConsumption: install a newer driver "
      "of NVIDIA's");
  EXPECT_EQ(why_not(fake_nvml_path("dead")), "NVML does not start: fake: failed");
}

TEST_F(NvmlEnergyTest, SaysWhyAGpuDoesNotCount) {
  EXPECT_EQ(why_not(fake_nvml_path("good"), "0000:07:00.0"), "NVML says: fake: not found");
  nvml_.gpus[0].result = 3;
  EXPECT_EQ(why_not(fake_nvml_path("good")), "NVML says: fake: not supported");
}

TEST_F(NvmlEnergyTest, LoadsNothingUntilAGpuIsToCount) {
  EXPECT_EQ(nvml_.begun, 0);
  EXPECT_FALSE(energy_.tells());
  ASSERT_TRUE(energy_.count(kFirst));
  EXPECT_EQ(nvml_.begun, 1);
  ASSERT_TRUE(energy_.count(kSecond));
  EXPECT_EQ(nvml_.begun, 1);
  energy_.close();
  EXPECT_EQ(nvml_.begun, 0);
  EXPECT_FALSE(energy_.tells());
}

TEST_F(NvmlEnergyTest, CountsTheGpusThatItIsToldOf) {
  ASSERT_TRUE(energy_.count(kFirst));
  nvml_.gpus[0].millijoules += 2000;
  nvml_.gpus[1].millijoules += 5000;
  EXPECT_EQ(read_and_take(100), 2 * kJoule) << "the other GPU has no part of a model";
  ASSERT_TRUE(energy_.count(kSecond));
  ASSERT_TRUE(energy_.count(kSecond)) << "of another model";
  nvml_.gpus[0].millijoules += 1000;
  nvml_.gpus[1].millijoules += 3000;
  EXPECT_EQ(read_and_take(200), 4 * kJoule);
}

TEST_F(NvmlEnergyTest, BetweenReadingsThePowerGoesOn) {
  ASSERT_TRUE(energy_.count(kFirst));
  nvml_.gpus[0].millijoules += 2000;
  EXPECT_EQ(read_and_take(100), 2 * kJoule);  // 20 W
  EXPECT_EQ(energy_.take(at(150), true), kJoule);
  EXPECT_EQ(energy_.take(at(900), true), kJoule) << "a reader that is late is not forecast for longer";
  nvml_.gpus[0].millijoules += 5000;
  EXPECT_EQ(read_and_take(900), 3 * kJoule);
}

TEST_F(NvmlEnergyTest, AGpuThatFailsIsLeftOut) {
  ASSERT_TRUE(energy_.count(kFirst));
  ASSERT_TRUE(energy_.count(kSecond));
  nvml_.gpus[0].millijoules += 7000;
  nvml_.gpus[0].result = 15;  // it is lost
  nvml_.gpus[1].millijoules += 1000;
  EXPECT_EQ(read_and_take(100), kJoule);
  EXPECT_TRUE(energy_.tells());
  nvml_.gpus[0].result = 0;
  nvml_.gpus[1].result = 15;
  energy_.read(at(200), true);
  EXPECT_FALSE(energy_.tells());
  EXPECT_EQ(energy_.take(at(300), true), 0);
  EXPECT_EQ(nvml_.begun, 1);
}

TEST_F(NvmlEnergyTest, ACounterThatGoesBackGoesOnFromThere) {
  ASSERT_TRUE(energy_.count(kFirst));
  nvml_.gpus[0].millijoules += 1000;
  EXPECT_EQ(read_and_take(100), kJoule);
  nvml_.gpus[0].millijoules = 500;  // the driver was loaded again
  EXPECT_EQ(read_and_take(200), 0);
  nvml_.gpus[0].millijoules += 3000;
  EXPECT_EQ(read_and_take(300), 3 * kJoule);
}

TEST_F(NvmlEnergyTest, WhatIdleGpusUseIsNoRequests) {
  ASSERT_TRUE(energy_.count(kFirst));
  nvml_.gpus[0].millijoules += 2000;
  EXPECT_EQ(read_and_take(100), 2 * kJoule);
  EXPECT_EQ(energy_.take(at(150), true), kJoule);  // forecast, for the last step
  nvml_.gpus[0].millijoules += 500'000;
  energy_.take(at(60'000), false);  // a request begins, and the reader wakes up
  EXPECT_EQ(energy_.take(at(60'002), true), 0);
  energy_.read(at(60'004), false);
  EXPECT_EQ(energy_.take(at(60'004), true), 0);
  EXPECT_EQ(energy_.take(at(60'054), true), kJoule) << "with the power of the requests before";
  nvml_.gpus[0].millijoules += 4000;
  EXPECT_EQ(read_and_take(60'104), 3 * kJoule) << "nothing that was forecast before it slept is missing here";
}

TEST_F(NvmlEnergyTest, TheReaderIsToldOfShortSteps) {
  ASSERT_TRUE(energy_.count(kFirst));
  energy_.take(at(10), false);
  EXPECT_FALSE(energy_.used_by_requests());
  energy_.take(at(20), true);
  EXPECT_TRUE(energy_.used_by_requests());
  EXPECT_FALSE(energy_.used_by_requests()) << "since the last call";
}

TEST_F(NvmlEnergyTest, TheFirstToTakeWakesAReaderThatRests) {
  ASSERT_TRUE(energy_.count(kFirst));
  energy_.take(at(10), true);
  EXPECT_FALSE(is_signalled()) << "it does not rest";
  energy_.rest();
  energy_.take(at(20), false);
  EXPECT_TRUE(is_signalled());
  energy_.take(at(30), true);
  EXPECT_FALSE(is_signalled()) << "once";
}

}  // namespace
}  // namespace chasqui
