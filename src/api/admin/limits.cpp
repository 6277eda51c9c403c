#include "api/admin/limits.h"

#include <map>

#include "api/core/frontend.h"
#include "api/core/node.h"
#include "api/core/served_model.h"
#include "api/delivery/kept_streams.h"
#include "base/limits.h"
#include "engine/admission.h"
#include "engine/session_table.h"

namespace chasqui {
namespace {

// What a flag, the machine or the model has made of them; all others are as the table has them.
std::map<std::string_view, double> chosen_here(const Node& node, const ServedModel& served) {
  const NodeConfig& config = node.config;
  const AdmissionConfig& admission = served.admission.config();
  const SessionLimits& sessions = served.sessions.limits();
  const KeptStreamLimits kept = node.frontend.kept != nullptr ? node.frontend.kept->limits() : KeptStreamLimits{};
  const auto number = [](auto value) { return static_cast<double>(value); };
  return {
      {"write_seconds", to_seconds(config.http.write_time)},
      {"connections", number(config.http.connections_max())},
      {"queue_requests", number(admission.queue_requests)},
      {"queue_tokens", number(admission.queue_tokens)},
      {"queue_timeout_seconds", to_seconds(served.limits.queue_timeout)},
      {"tenant_requests", number(config.frontend.tenant_requests)},
      {"sessions", number(sessions.sessions)},
      {"tenant_sessions", number(served.config.tenant_sessions)},
      {"session_tokens", number(sessions.tokens)},
      {"session_ttl_seconds", to_seconds(sessions.ttl)},
      {"prefix_cache_bytes", number(served.config.cache_bytes)},
      {"disk_cache_bytes", number(served.config.disk_cache_bytes)},
      {"shared_cache_bytes", number(served.config.shared_cache_bytes)},
      {"drain_seconds", to_seconds(config.drain_time)},
      {"resume_streams", number(kept.streams)},
      {"resume_tenant_streams", number(kept.tenant_streams)},
      {"resume_bytes", number(kept.bytes)},
      {"resume_ttl_seconds", to_seconds(kept.ttl)},
  };
}

void write_waits(JsonWriter& json, const AdmissionConfig& admission) {
  json.begin_object();
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    json.field(name(static_cast<ServiceClass>(c)), to_seconds(admission.queue_wait[c]));
  }
  json.end_object();
}

void write_value(JsonWriter& json, const Limit& limit, double value) {
  if (limit.unit == LimitUnit::time) return json.field(limit.name, value);
  json.field(limit.name, static_cast<std::int64_t>(value));
}

}  // namespace

void write_limits(JsonWriter& json, const Node& node, const ServedModel& served) {
  const auto chosen = chosen_here(node, served);
  json.begin_object();
  for (const Limit& limit : kLimits) {
    if (limit.name == "queue_wait_seconds") {
      json.key(limit.name);
      write_waits(json, served.admission.config());
      continue;
    }
    const auto found = chosen.find(limit.name);
    const double standard = static_cast<double>(limit.standard) / (limit.unit == LimitUnit::time ? 1000 : 1);
    write_value(json, limit, found != chosen.end() ? found->second : standard);
  }
  json.field("context_tokens", served.limits.context);
  json.field("session_text_bytes", served.sessions.limits().text_bytes_max());
  json.end_object();
}

}  // namespace chasqui
