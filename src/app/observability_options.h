// Flags for those who watch the server: log lines of requests, recordings, and spans.
#pragma once

#include "app/config.h"
#include "net/http_post.h"

namespace CLI {
class App;
}

namespace chasqui {

void add_watching_options(CLI::App& app, ServeConfig& config);
// Where spans go; nothing: nowhere. An error when --otlp-endpoint is no address.
Result<std::optional<net::HttpTarget>> collector_of(const ServeConfig& config);

}  // namespace chasqui
