#include "api/core/entry.h"

#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/reading_time.h"
#include "api/core/request_hash.h"
#include "api/core/served_model.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

Applicant applicant_of(const Frontend& frontend, const Caller& caller) {
  // Where there is one tenant, a quota would protect it from itself.
  const bool alone = caller.tenant.id == 0 || frontend.keys.tenants() <= 1;
  Applicant applicant;
  applicant.tenant = caller.tenant.id;
  applicant.requests_max =
      caller.in_flight.value_or(alone ? frontend.config.anonymous_requests : frontend.config.tenant_requests);
  return applicant;
}

}  // namespace

Result<Permit> enter(const Frontend& frontend, ServedModel& served, const Caller& caller, std::string_view path,
                     std::string_view body) {
  Applicant applicant = applicant_of(frontend, caller);
  applicant.request_hash = frontend.request_hasher.of(caller.tenant.id, path, body);
  return served.admission.enter(applicant, served.engine.load(), frontend.clock.now());
}

Result<Permit> enter(const Call& call) {
  return enter(call.frontend, call.served, call.caller, call.exchange.request().path, call.body);
}

Result<Permit> enter_aside(const Frontend& frontend, ServedModel& served, const Caller& caller) {
  return served.admission.enter_aside(applicant_of(frontend, caller), frontend.clock.now());
}

Result<Permit> enter_aside(const Call& call) { return enter_aside(call.frontend, call.served, call.caller); }

net::OffloadTerms reading_terms(const Caller& caller, std::string_view body) {
  net::OffloadTerms terms;
  terms.owner = caller.tenant.id;
  terms.bytes = body.size();
  terms.can_wait = reading_can_wait(body);
  return terms;
}

net::OffloadTerms reading_terms(const Call& call) {
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  terms.gone = [&exchange = call.exchange] { return exchange.client_gone(); };
  return terms;
}

}  // namespace chasqui
