#include "base/cpu_account.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/rapl_energy.h"

namespace chasqui {
namespace {

// Clocks that a test moves: `thread` computes for `time`, and the process with it.
struct FakeCpu {
  static inline Duration process{};
  static inline std::map<int, Duration> threads{};

  FakeCpu() {
    process = seconds(7);  // before anything is counted
    threads = {{kEmbed, seconds(3)}, {kOtherEmbed, seconds(1)}, {kWorker, seconds(2)}};
  }
  static void compute(int thread, Duration time) {
    process += time;
    threads[thread] += time;
  }

  static constexpr int kWorker = 1;
  static constexpr int kEmbed = 2;
  static constexpr int kOtherEmbed = 3;

  CpuAccount account{
      {[] { return process; }, [](int thread) { return threads[thread]; }, [] { return TimePoint{} + process; }}};
};

constexpr int kWorker = FakeCpu::kWorker;
constexpr int kEmbed = FakeCpu::kEmbed;

TEST(CpuAccount, StepsShareWhatIsComputedWhileAWorkerHasAny) {
  FakeCpu cpu;
  FakeCpu::compute(kWorker, milliseconds(50));  // for nothing
  cpu.account.begin_steps();
  FakeCpu::compute(kWorker, milliseconds(10));
  EXPECT_EQ(cpu.account.take_step().cpu, milliseconds(10));
  FakeCpu::compute(kWorker, milliseconds(20));
  EXPECT_EQ(cpu.account.take_step().cpu, milliseconds(20));
  cpu.account.end_steps();
  FakeCpu::compute(kWorker, milliseconds(40));  // spins
  cpu.account.begin_steps();
  EXPECT_EQ(cpu.account.take_step().cpu, Duration::zero());
}

TEST(CpuAccount, AJobThatRunsAloneHasAllThatIsComputed) {
  FakeCpu cpu;
  FakeCpu::compute(kWorker, milliseconds(50));
  cpu.account.begin_waiting();
  cpu.account.begin_job(kEmbed);
  FakeCpu::compute(kEmbed, milliseconds(10));
  FakeCpu::compute(kWorker, milliseconds(5));  // a compute thread
  EXPECT_EQ(cpu.account.end_job(kEmbed).cpu, milliseconds(15));
  FakeCpu::compute(kWorker, milliseconds(2));  // the loop, before the next job
  cpu.account.begin_job(kEmbed);
  FakeCpu::compute(kEmbed, milliseconds(1));
  EXPECT_EQ(cpu.account.end_job(kEmbed).cpu, milliseconds(3));
  cpu.account.end_waiting();
}

TEST(CpuAccount, AJobBesideStepsHasTheTimeOfItsThreadAndTheStepsHaveTheRest) {
  FakeCpu cpu;
  cpu.account.begin_steps();
  cpu.account.begin_waiting();
  cpu.account.begin_job(kEmbed);
  for (int i = 0; i < 4; ++i) {
    FakeCpu::compute(kEmbed, milliseconds(10));
    FakeCpu::compute(kWorker, milliseconds(7));
    EXPECT_EQ(cpu.account.take_step().cpu, milliseconds(7));
  }
  FakeCpu::compute(kEmbed, milliseconds(1));
  FakeCpu::compute(kWorker, milliseconds(3));
  EXPECT_EQ(cpu.account.end_job(kEmbed).cpu, milliseconds(41));
  EXPECT_EQ(cpu.account.take_step().cpu, milliseconds(3));
  FakeCpu::compute(kEmbed, milliseconds(2));  // between two jobs it is a thread like any other
  EXPECT_EQ(cpu.account.take_step().cpu, milliseconds(2));
}

TEST(CpuAccount, WhatAJobsThreadsHaveComputedBeforeAWorkerBeginsIsTheJobs) {
  FakeCpu cpu;
  cpu.account.begin_waiting();
  cpu.account.begin_job(kEmbed);
  FakeCpu::compute(kEmbed, milliseconds(10));
  FakeCpu::compute(kWorker, milliseconds(70));  // compute threads of the job
  cpu.account.begin_steps();
  FakeCpu::compute(kWorker, milliseconds(4));
  EXPECT_EQ(cpu.account.take_step().cpu, milliseconds(4));
  EXPECT_EQ(cpu.account.end_job(kEmbed).cpu, milliseconds(80));
}

TEST(CpuAccount, NothingIsTakenTwiceByJobsOfTwoModels) {
  FakeCpu cpu;
  cpu.account.begin_waiting();
  cpu.account.begin_waiting();
  cpu.account.begin_job(kEmbed);
  cpu.account.begin_job(FakeCpu::kOtherEmbed);
  FakeCpu::compute(kEmbed, milliseconds(10));
  FakeCpu::compute(FakeCpu::kOtherEmbed, milliseconds(20));
  FakeCpu::compute(kWorker, milliseconds(4));
  const Duration one = cpu.account.end_job(kEmbed).cpu;
  const Duration other = cpu.account.end_job(FakeCpu::kOtherEmbed).cpu;
  EXPECT_EQ(one, milliseconds(14));
  EXPECT_EQ(other, milliseconds(20));
}

TEST(CpuAccount, JobsThatFindNoPlaceAreCountedLikeOtherWork) {
  FakeCpu cpu;
  cpu.account.begin_steps();
  cpu.account.begin_waiting();
  constexpr int kFirst = 100, kMany = 40;
  for (int i = 0; i < kMany; ++i) cpu.account.begin_job(kFirst + i);
  for (int i = 0; i < kMany; ++i) FakeCpu::compute(kFirst + i, milliseconds(1));
  Duration all = cpu.account.take_step().cpu;
  for (int i = 0; i < kMany; ++i) all += cpu.account.end_job(kFirst + i).cpu;
  EXPECT_EQ(all, milliseconds(kMany));
}

TEST(CpuAccount, EnergyIsSharedLikeTime) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("chasqui-account-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "intel-rapl:0");
  std::ofstream(folder / "intel-rapl:0/name") << "package-0\n";
  const auto count = [&folder](int joules) {
    std::ofstream(folder / "intel-rapl:0/energy_uj") << joules << "000000\n";
  };
  count(100);
  FakeCpu cpu;
  cpu.account.begin_steps();
  EXPECT_FALSE(cpu.account.take_step().joules) << "where the machine does not tell";
  cpu.account.end_steps();
  std::vector<std::unique_ptr<EnergySource>> sources;
  sources.push_back(RaplEnergy::open(folder, TimePoint{} + FakeCpu::process));
  cpu.account.measure_energy(std::make_unique<EnergyMeter>(std::move(sources)));
  count(150);
  FakeCpu::compute(kWorker, seconds(1));  // for nothing
  cpu.account.begin_steps();
  cpu.account.begin_waiting();
  cpu.account.begin_job(kEmbed);
  count(158);
  FakeCpu::compute(kWorker, milliseconds(300));
  FakeCpu::compute(kEmbed, milliseconds(100));
  EXPECT_DOUBLE_EQ(cpu.account.take_step().joules.value_or(-1), 6);
  EXPECT_DOUBLE_EQ(cpu.account.end_job(kEmbed).joules.value_or(-1), 2);
  EXPECT_DOUBLE_EQ(cpu.account.meter()->metrics().joules.value(), 8);
  cpu.account.end_waiting();
  std::filesystem::remove_all(folder);
}

TEST(CpuAccount, OfTheProcessIsInTheTimeOfItsThreads) {
  CpuAccount& account = cpu_account();
  account.begin_waiting();
  CpuJob job(account);
  const ThreadWatch thread;
  const Duration before = thread.computed();
  volatile std::uint64_t work = 0;
  while (thread.computed() == before && work < 100'000'000) work = work + 1;
  const Duration mine = job.end().cpu;
  EXPECT_GT(mine, Duration::zero());
  EXPECT_EQ(job.end().cpu, Duration::zero()) << "once";
  account.end_waiting();
}

}  // namespace
}  // namespace chasqui
