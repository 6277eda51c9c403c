#include "sim/admission_gate.h"

#include "sim/random.h"

namespace chasqui {

AdmissionConfig AdmissionGate::admission_config(const AdmissionGateConfig& config, std::int32_t slots) {
  AdmissionConfig admission;
  admission.slots = slots;
  admission.queue_requests = config.queue_requests;
  admission.queue_tokens = config.queue_tokens;
  admission.queue_wait = config.queue_wait;
  return admission;
}

std::optional<Duration> AdmissionGate::refusal(Permit& permit, const PlannedRequest& plan, std::uint64_t serial,
                                               TimePoint now) {
  Applicant applicant;
  applicant.tenant = plan.tenant + 1;
  applicant.requests_max = config_.tenant_requests;
  applicant.request_hash = hash_bits(serial);  // a client that comes back is known again
  Result<Permit> entered = admission_.enter(applicant, load_, now);
  if (!entered) return entered.error().retry_after;
  permit = std::move(*entered);
  const Result<void> weighed = admission_.weigh(permit, plan.service_class, plan.prompt, load_, now);
  if (weighed) return std::nullopt;
  permit.release();
  return weighed.error().retry_after;
}

}  // namespace chasqui
