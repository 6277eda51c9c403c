#include "model/llama_threads.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "model/llama_model.h"
#include "model/test_options.h"
#include "model/test_rows.h"
#include "model/test_weights.h"

#ifdef __linux__
#include <sched.h>
#include <unistd.h>

namespace chasqui {
namespace {

using Cpus = std::set<int>;

Cpus cpus_of(int thread) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(thread, sizeof allowed, &allowed);
  Cpus cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) cpus.insert(cpu);
  }
  return cpus;
}

std::set<int> threads_of_process() {
  std::set<int> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(std::stoi(entry.path().filename()));
  }
  return threads;
}

std::string range(int first, int last) { return std::to_string(first) + "-" + std::to_string(last); }

Result<std::unique_ptr<LlamaModel>> make_threaded(const std::vector<Words>& given, std::int32_t threads = 2) {
  ModelConfig config{.slots = 1, .cells = 256, .threads = threads, .adapt_threads = false};
  config.llama = flags(given);
  return LlamaModel::make(test_weights(), config);
}

const std::vector<Token> kRows(4, 5);

// Of the threads that are there since `before`, and of the one that decodes.
struct Seen {
  std::vector<Cpus> others;
  Cpus own;
};

Seen after_a_decode(LlamaModel& model, const std::set<int>& before, std::size_t rows = 1) {
  Seen seen;
  std::thread worker([&] {
    run(model, 0, 0, std::span(kRows).first(rows));
    model.trim(SlotId{0}, 0);
    seen.own = cpus_of(0);
    for (const int thread : threads_of_process()) {
      if (!before.contains(thread) && thread != ::gettid()) seen.others.push_back(cpus_of(thread));
    }
  });
  worker.join();
  return seen;
}

TEST(LlamaThreads, StandOnTheCpusOfTheMask) {
  const Cpus allowed = cpus_of(0);
  const int one = *allowed.rbegin();
  const std::set<int> before = threads_of_process();
  auto model = make_threaded({{"--cpu-range", range(one, one)}});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(cpus_of(0), allowed) << "who makes a model stays where it was";
  const Seen seen = after_a_decode(**model, before);
  EXPECT_EQ(seen.own, Cpus{one}) << "the thread that decodes is the first of the pool";
  ASSERT_FALSE(seen.others.empty());
  for (const Cpus& cpus : seen.others) EXPECT_EQ(cpus, Cpus{one});
}

TEST(LlamaThreads, StandEachOnItsOwnCpuWhereThatIsStrict) {
  const Cpus allowed = cpus_of(0);
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  const std::set<int> before = threads_of_process();
  auto model = make_threaded({{"--cpu-range", range(0, *allowed.rbegin())}, {"--cpu-strict", "1"}});
  ASSERT_TRUE(model) << model.error().message;
  const Seen seen = after_a_decode(**model, before);
  ASSERT_EQ(seen.others.size(), 1u);
  EXPECT_EQ(seen.own.size(), 1u);
  EXPECT_EQ(seen.others[0].size(), 1u);
  EXPECT_NE(seen.others[0], seen.own);
}

TEST(LlamaThreads, OfSeveralRowsMayStandElsewhere) {
  const Cpus allowed = cpus_of(0);
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  const int first = *allowed.begin();
  const int last = *allowed.rbegin();
  auto model = make_threaded({{"--cpu-range", range(first, first)}, {"--cpu-range-batch", range(last, last)}}, 1);
  ASSERT_TRUE(model) << model.error().message;
  const std::set<int> before = threads_of_process();
  EXPECT_EQ(after_a_decode(**model, before, 1).own, Cpus{first});
  EXPECT_EQ(after_a_decode(**model, before, 4).own, Cpus{last});
  EXPECT_EQ(after_a_decode(**model, before, 1).own, Cpus{first});
}

TEST(LlamaThreads, AreNoMoreThanTheCpusOfTheMask) {
  const int one = *cpus_of(0).begin();
  auto model = make_threaded({{"--cpu-range", range(one, one)}}, 0);
  ASSERT_TRUE(model) << model.error().message;
  after_a_decode(**model, {});
  EXPECT_EQ((*model)->compute_stats().threads, 1);
}

TEST(LlamaThreads, HaveThePriorityThatWasAskedForWhereTheSystemLetsThem) {
  auto model = make_threaded({{"--prio", "-1"}}, 1);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  int policy = -1;
  std::thread worker([&] {
    run(**model, 0, 0, kRows);
    policy = ::sched_getscheduler(0);
  });
  worker.join();
  EXPECT_EQ(policy, SCHED_BATCH);
  auto urgent = make_threaded({{"--prio", "2"}}, 1);  // only root may; others are told so in the log
  ASSERT_TRUE(urgent) << urgent.error().message;
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST(LlamaThreads, OnCpusThatAreNotThereAreRefused) {
  const auto field = [](const std::vector<Words>& given) {
    const auto model = make_threaded(given);
    return model ? std::string("none") : model.error().field;
  };
  EXPECT_EQ(field({{"--cpu-range", "500-510"}}), "--cpu-mask");
  EXPECT_EQ(field({{"--cpu-range-batch", "500-510"}}), "--cpu-mask-batch");
}

}  // namespace
}  // namespace chasqui
#endif
