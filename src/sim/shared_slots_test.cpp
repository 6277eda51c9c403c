// What clients of different tenants and classes get of the slots that they share, on the costs of several machines: the
// promises of fair waiting, on virtual time. That each answer is the one that its request gets alone is checked by the
// simulation itself, token by token.
#include <gtest/gtest.h>

#include "sim/cost_preset.h"
#include "sim/simulation.h"

namespace chasqui {
namespace {

// Each client asks for the same again and again.
struct Asker {
  std::uint32_t tenant = 0;
  ServiceClass service_class = ServiceClass::standard;
  TokenCount prompt = 16;
  TokenCount output = 100;
};

class AskersWorkload final : public Workload {
 public:
  AskersWorkload(std::vector<Asker> askers, std::uint64_t requests) : askers_(std::move(askers)), left_(requests) {
    std::uint32_t tenants = 0;
    for (const Asker& asker : askers_) tenants = std::max(tenants, asker.tenant + 1);
    for (std::uint32_t i = 0; i < tenants; ++i) tenants_.push_back("t" + std::to_string(i));
  }
  bool next(PlannedRequest& request) override {
    if (left_ == 0) return false;
    --left_;
    request = PlannedRequest{};
    return true;
  }
  void give_to(PlannedRequest& request, std::uint32_t client, std::uint32_t) const override {
    const Asker& asker = askers_[client];
    request.tenant = asker.tenant;
    request.service_class = asker.service_class;
    request.prompt = asker.prompt;
    request.output = asker.output;
  }

 private:
  const std::vector<Asker> askers_;
  std::uint64_t left_;
};

// At their own times.
class TimedWorkload final : public Workload {
 public:
  TimedWorkload(std::vector<PlannedRequest> requests, std::uint32_t tenants) : requests_(std::move(requests)) {
    for (std::uint32_t i = 0; i < tenants; ++i) tenants_.push_back("t" + std::to_string(i));
    std::ranges::stable_sort(requests_, {}, &PlannedRequest::at);
  }
  bool next(PlannedRequest& request) override {
    if (next_ == requests_.size()) return false;
    request = requests_[next_++];
    return true;
  }

 private:
  std::vector<PlannedRequest> requests_;
  std::size_t next_ = 0;
};

SimulationConfig config_for(const CostPreset& preset, std::int32_t slots) {
  constexpr TokenCount kSlotCells = 2048;
  SimulationConfig config;
  config.scheduler.kv = {slots, slots * kSlotCells, kSlotCells, false};
  config.scheduler.rows_max = 2048;
  config.scheduler.dense_slots = config.scheduler.exchanges = true;
  config.scheduler.reuse.kv_block = 32;
  config.scheduler.reuse.kv_token_bytes = kTokenBytes;
  config.scheduler.reuse.slots_ready = slots_kept_ready(slots);
  config.scheduler.reuse.cache.bytes = std::size_t{1'000'000} * kTokenBytes;
  config.cost = preset.cost;
  config.gate.queue_tokens = 0;
  return config;
}

Statistics run_shared(const SimulationConfig& config, Workload& workload) {
  Simulation simulation(config, workload);
  EXPECT_TRUE(simulation.run()) << simulation.faults().lines().front();
  const Group& all = simulation.statistics().all();
  EXPECT_EQ(all.outcomes[0], all.requests) << "every answer is whole";
  return simulation.statistics();
}

Statistics run_shared(const CostPreset& preset, std::int32_t slots, const std::vector<Asker>& askers,
                      std::uint64_t requests) {
  SimulationConfig config = config_for(preset, slots);
  config.clients.clients = static_cast<std::int32_t>(askers.size());
  AskersWorkload workload(askers, requests);
  return run_shared(config, workload);
}

double tokens_per_s(const Statistics& run_shared) {
  return static_cast<double>(run_shared.all().tokens) / to_seconds(run_shared.virtual_time);
}
const Group& interactive(const Statistics& run_shared) { return run_shared.groups()[1]; }

// A decode step of all slots.
double step_ms(const CostPreset& preset, int slots) {
  const StepCost& each = preset.cost.decode;
  return (each.pass_us + preset.cost.launch_us + slots * (each.row_us + 500 * each.cell_us)) / 1000;
}

class SharedSlots : public testing::TestWithParam<const char*> {
 protected:
  const CostPreset preset_ = *find_cost_preset(GetParam(), "preset");
};

// A hundred streams of A that want more tokens than the run has time for, and every thirty steps a request of B.
Statistics two_tenants(const CostPreset& preset, int streams, int short_ones) {
  constexpr std::int32_t kSlots = 8;
  std::vector<PlannedRequest> requests;
  for (int i = 0; i < streams; ++i) {
    PlannedRequest& request = requests.emplace_back();
    request.prompt = 16;
    request.output = 1500;
  }
  const std::chrono::duration<double, std::milli> between(30 * step_ms(preset, kSlots));
  for (int i = 1; i <= short_ones; ++i) {
    PlannedRequest& request = requests.emplace_back();
    request.at = std::chrono::duration_cast<Duration>(i * between);
    request.tenant = 1;
    request.service_class = ServiceClass::interactive;
    request.prompt = 24;
    request.output = 8;
  }
  TimedWorkload workload(std::move(requests), 2);
  return run_shared(config_for(preset, kSlots), workload);
}

TEST_P(SharedSlots, InteractiveRequestsOfOneTenantBesideAHundredStreamsOfAnother) {
  const Statistics alone = two_tenants(preset_, 0, 200);
  const Statistics without = two_tenants(preset_, 100, 0);
  const Statistics beside = two_tenants(preset_, 100, 500);
  const Percentiles& first = interactive(beside).ttft;
  EXPECT_LE(first.at(0.5), 2 * interactive(alone).ttft.at(0.5) + step_ms(preset_, 8));
  EXPECT_LE(first.at(0.99), 5 * interactive(alone).ttft.at(0.5));
  EXPECT_GE(tokens_per_s(beside), 0.95 * tokens_per_s(without));
}

// … over its max-min share, in windows of ten seconds.
TEST_P(SharedSlots, TenantsWithOneTenAndAHundredClientsGetEquallyMany) {
  constexpr std::int32_t kSlots = 8;
  std::vector<Asker> askers;
  const std::vector<double> clients = {1, 10, 100};
  for (std::uint32_t tenant = 0; tenant < clients.size(); ++tenant) {
    askers.insert(askers.end(), static_cast<std::size_t>(clients[tenant]), {tenant, ServiceClass::standard, 16, 1000});
  }
  const Statistics statistics = run_shared(preset_, kSlots, askers, 333);
  ASSERT_GT(statistics.token_windows.end_of_first(), 8u);
  // Where to swap a sequence takes long, slices are nearly as long as a window.
  const bool long_slices = preset_.name == "8b-desktop";
  EXPECT_GE(statistics.token_windows.least_jain(clients, kSlots, 2), long_slices ? 0.75 : 0.95);
}

TEST_P(SharedSlots, ThirtyTwoStreamsOfMixedClassesAreAsFastAsOfOne) {
  constexpr std::int32_t kSlots = 32;
  const auto streams = [](std::initializer_list<ServiceClass> classes) {
    std::vector<Asker> askers;
    while (askers.size() < 32) {
      for (const ServiceClass each : classes) askers.push_back({0, each, 64, 150});
    }
    askers.resize(32);
    return askers;
  };
  const Statistics one = run_shared(preset_, kSlots, streams({ServiceClass::standard}), 320);
  const Statistics urgent = run_shared(preset_, kSlots, streams({ServiceClass::interactive}), 320);
  const Statistics mixed = run_shared(
      preset_, kSlots, streams({ServiceClass::interactive, ServiceClass::standard, ServiceClass::background}), 320);
  EXPECT_GE(tokens_per_s(mixed), 0.95 * tokens_per_s(one));
  EXPECT_LE(interactive(mixed).itl.at(0.5), 1.001 * interactive(urgent).itl.at(0.5));
}

INSTANTIATE_TEST_SUITE_P(Presets, SharedSlots,
                         testing::Values("0.5b-laptop", "1.1b-desktop", "8b-desktop", "8b-gpu", "70b-gpu"),
                         [](const auto& each) {
                           std::string name = each.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

TEST(TokenWindows, FairSharesLeaveWhatFewClientsCannotUse) {
  const std::vector<double> clients = {100, 1, 10};
  EXPECT_EQ(TokenWindows::max_min(clients, 8), (std::vector<double>{3.5, 1, 3.5}));
  TokenWindows windows(3);
  const TimePoint start{};
  for (int s = 0; s < 50; ++s) {
    for (const std::uint32_t tenant : {0, 1, 2}) windows.add(tenant, start + seconds(s), tenant == 1 ? 2 : 7);
  }
  EXPECT_DOUBLE_EQ(windows.least_jain(clients, 8, 1), 1);
  windows.add(0, start + seconds(25), 1000);
  EXPECT_LT(windows.least_jain(clients, 8, 1), 0.5);
  EXPECT_DOUBLE_EQ(windows.least_jain(clients, 8, 3), 1) << "that was before";
  windows.add(0, start + seconds(80), 1000);
  EXPECT_EQ(windows.end_of_first(), 4u) << "the others have ended";
}

}  // namespace
}  // namespace chasqui
