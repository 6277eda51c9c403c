#include "app/observability_options.h"

#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "app/option_kinds.h"

namespace chasqui {
namespace {

// By whether lines are short.
const std::map<std::string, bool> kRequestLogForms = {{"short", true}, {"long", false}};

}  // namespace

Result<std::optional<net::HttpTarget>> collector_of(const ServeConfig& config) {
  if (config.otlp_endpoint.empty()) return std::optional<net::HttpTarget>();
  auto target = net::read_http_url(config.otlp_endpoint);
  if (!target) return invalid_field("--otlp-endpoint", "--otlp-endpoint: " + target.error().message);
  if (target->path.ends_with('/')) target->path.pop_back();
  if (!target->path.ends_with("/v1/traces")) target->path += "/v1/traces";
  return std::optional<net::HttpTarget>(std::move(*target));
}

void add_watching_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Operation");
  app.add_flag("--log-requests,!--no-log-requests", config.log_requests,
               "whether each request that has ended is a line in the log; it is by default")
      ->envname("CHASQUI_LOG_REQUESTS");
  add_choice(app, "--request-log-form", config.short_request_lines, kRequestLogForms,
             "how much such a line says in a log that is text: status, time, tokens, model, client and id, or all "
             "fields, as in JSON; see docs/tracing.md")
      ->envname("CHASQUI_REQUEST_LOG_FORM")
      ->default_str("short");
  app.add_flag("--log-prompts", config.log_prompts, "log what clients ask: at most 8 KiB of each request's body")
      ->envname("CHASQUI_LOG_PROMPTS");
  app.add_option("--record", config.record,
                 "record when requests come, how long they are and what is planned, without their texts, for "
                 "`chasqui replay`: a bug report is this file")
      ->envname("CHASQUI_RECORD")
      ->type_name("FILE");
  app.add_option("--otlp-endpoint", config.otlp_endpoint,
                 "collector of spans, http[s]://HOST[:PORT][/PATH]; /v1/traces is added: see docs/tracing.md")
      ->envname("OTEL_EXPORTER_OTLP_ENDPOINT")
      ->type_name("URL");
}

}  // namespace chasqui
