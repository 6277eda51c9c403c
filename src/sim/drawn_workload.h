// A workload drawn from a seed. What it draws does not depend on what the server does, so that two policies see the
// same requests. One thread.
#pragma once

#include <array>
#include <vector>

#include "sim/distribution.h"
#include "sim/random.h"
#include "sim/workload.h"

namespace chasqui {

struct TenantShare {
  double share = 1;   // of the requests
  double weight = 1;  // of the service that it is promised
};

struct WorkloadConfig {
  std::uint64_t seed = 1;
  std::uint64_t requests = 10'000;
  double rate = 2;  // requests a second, evenly random
  Distribution prompt{64};
  Distribution output{32};
  std::int64_t max_tokens = 0;  // what the clients ask for; 0: exactly what they will get
  std::array<double, kServiceClasses> classes = {0, 1, 0};
  std::vector<TenantShare> tenants = {{}};
  std::int32_t prefixes = 0;  // how many different ones
  Distribution prefix_tokens{256};
  double prefix_share = 0;  // of the requests that begin with one
  double leaving_share = 0;
  Distribution leaving_ms{1000};
  double timeout_share = 0;
  Distribution timeout_ms{30'000};
  double slow_share = 0;
  double slow_reads_per_s = 5;
  double repeats = 0;         // of the tokens of each answer, as PlannedRequest
  std::int32_t adapters = 0;  // how many sets
  double adapter_share = 0;   // of the requests that want one of them
  double call_share = 0;      // of the answers that call a tool
  double branch_share = 0;    // of the turns that leave out the latest one
};

class DrawnWorkload final : public Workload {
 public:
  explicit DrawnWorkload(const WorkloadConfig& config);
  bool next(PlannedRequest& request) override;
  void give_to(PlannedRequest& request, std::uint32_t client, std::uint32_t clients) const override;

 private:
  void draw_leaving(PlannedRequest& request);

  const WorkloadConfig config_;
  Random random_;
  std::vector<TokenCount> prefix_lengths_;
  std::uint64_t drawn_ = 0;
  double seconds_ = 0;
};

}  // namespace chasqui
