#include "app/gpu_energy.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/fake_nvml.h"
#include "base/thread_time.h"

namespace chasqui {
namespace {

constexpr const char* kGpu = "0000:01:00.0";

// What a server has of it, with the thread and the clock of one.
class GpuEnergyTest : public testing::Test {
 protected:
  GpuEnergyTest() {
    auto source = std::make_unique<NvmlEnergy>(RealClock().now(), fake_nvml_path("good"));
    energy_ = source.get();
    std::vector<std::unique_ptr<EnergySource>> sources;
    sources.push_back(std::move(source));
    account_.measure_energy(std::make_unique<EnergyMeter>(std::move(sources)));
    gpus_.emplace(*energy_, account_);
  }

  // Until the other thread has done it; a test that hangs here fails.
  template <class Done>
  static void wait_until(Done&& done) {
    while (!done()) std::this_thread::yield();
  }
  void wait_for_readings(int more) const {
    const int enough = nvml_.readings + more;
    wait_until([&] { return nvml_.readings >= enough; });
  }
  void use_gpu() {
    gpus_->use({kGpu});
    wait_until([this] { return energy_->tells(); });
  }

  FakeNvml& nvml_ = FakeNvml::reset();
  CpuAccount account_{
      {&process_time, [](int number) { return thread_time(number); }, [] { return RealClock().now(); }}};
  NvmlEnergy* energy_ = nullptr;
  std::optional<GpuEnergy> gpus_;
};

TEST_F(GpuEnergyTest, NoModelOnAGpuLoadsNothing) {
  account_.begin_steps();
  EXPECT_FALSE(account_.take_step().joules);
  account_.end_steps();
  gpus_.reset();
  EXPECT_EQ(nvml_.begun, 0);
  EXPECT_EQ(nvml_.readings, 0);
}

TEST_F(GpuEnergyTest, ReadsWhileRequestsAreComputedAndEndsNvml) {
  use_gpu();
  EXPECT_EQ(nvml_.begun, 1);
  account_.begin_steps();
  wait_for_readings(2);  // one of before, and the first of the requests
  nvml_.gpus[0].millijoules += 5000;
  double joules = 0;
  wait_until([&] { return (joules += account_.take_step().joules.value_or(0)) >= 5; });
  account_.end_steps();
  EXPECT_DOUBLE_EQ(account_.meter()->metrics().joules.value(), joules);
  gpus_.reset();
  EXPECT_EQ(nvml_.begun, 0);
  EXPECT_FALSE(energy_->tells());
}

TEST_F(GpuEnergyTest, RestsWhileThereAreNoRequestsWhichDoNotPayForThat) {
  use_gpu();
  account_.begin_steps();
  account_.end_steps();
  wait_until([this] { return energy_->rests(); });
  nvml_.gpus[0].millijoules += 1'000'000;
  account_.begin_steps();
  wait_for_readings(2);
  EXPECT_DOUBLE_EQ(account_.take_step().joules.value_or(-1), 0);
  account_.end_steps();
  wait_until([this] { return energy_->rests(); });
}

}  // namespace
}  // namespace chasqui
