// The way in: the real Admission, asked as the server asks it, with the load that the workers last published. Owned by
// the simulation, outlives its permits; one thread.
#pragma once

#include <optional>

#include "engine/admission.h"
#include "sched/scheduler.h"
#include "sim/workload.h"

namespace chasqui {

struct AdmissionGateConfig {
  std::size_t queue_requests = AdmissionConfig{}.queue_requests;
  std::int64_t queue_tokens = AdmissionConfig{}.queue_tokens;                       // 0: no limit
  std::array<Duration, kServiceClasses> queue_wait = AdmissionConfig{}.queue_wait;  // zero: no limit
  std::size_t tenant_requests = 0;  // of one tenant at once; 0: no limit
};

class AdmissionGate {
 public:
  AdmissionGate(const AdmissionGateConfig& config, std::int32_t slots)
      : config_(config), admission_(admission_config(config, slots)) {}

  // What the workers said after their last steps.
  void publish(const Load& load) { load_ = load; }
  // None: come in, with this permit. Else how long the client is told to wait; zero: for ever.
  std::optional<Duration> refusal(Permit& permit, const PlannedRequest& plan, std::uint64_t serial, TimePoint now);

  std::size_t in_flight() const { return admission_.in_flight(); }
  // More are never let in.
  std::size_t places() const { return admission_.config().places() + admission_.config().places_for_few(); }

 private:
  static AdmissionConfig admission_config(const AdmissionGateConfig& config, std::int32_t slots);

  const AdmissionGateConfig config_;
  Admission admission_;
  Load load_;
};

}  // namespace chasqui
