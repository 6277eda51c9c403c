// What a run is told as: a text for people and JSON for programs. The same run gives the same bytes. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "sim/faults.h"
#include "sim/statistics.h"

namespace chasqui {

// One finished run.
struct RunReport {
  std::string policy;
  std::uint64_t seed = 0;
  const Statistics* statistics = nullptr;
  const Faults* faults = nullptr;
};

// REQUIRES: runs is not empty. Several runs are of the same workload, and stand side by side.
std::string report_text(const std::vector<RunReport>& runs);
std::string report_json(const std::vector<RunReport>& runs);

}  // namespace chasqui
