#include "publish/kv_events_config.h"

#include <utility>

namespace chasqui::publish {
namespace {

bool is_address(std::string_view host) {
  if (host == "*" || host.starts_with('[')) return true;
  const std::size_t last = host.find_last_of('.');
  const std::string_view label = host.substr(last == std::string_view::npos ? 0 : last + 1);
  return label.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Result<bool> listens(const std::string& endpoint) {
  constexpr std::string_view kTcp = "tcp://", kIpc = "ipc://";
  const std::string_view text = endpoint;
  if (text.starts_with(kIpc) && text.size() > kIpc.size()) return true;
  const std::size_t colon = text.rfind(':');
  if (text.starts_with(kTcp) && colon > kTcp.size() && colon + 1 < text.size()) {
    const std::string_view port = text.substr(colon + 1);
    const std::string_view host = text.substr(kTcp.size(), colon - kTcp.size());
    const bool plain = port == "*" || port.find_first_not_of("0123456789") == std::string_view::npos;
    if (plain && (is_address(host) || port != "*")) return is_address(host);
  }
  return invalid_field("",
                       "give tcp://ADDRESS:PORT, where * is every address and any port, tcp://HOST:PORT of a "
                       "subscriber that listens, or ipc://PATH");
}

Result<void> check_kv_events(const KvEventsConfig& config, std::size_t models) {
  if (config.endpoint.empty()) {
    const char* const flag = !config.replay.empty() ? "--kv-events-replay" : "--kv-events-topic";
    if (config.replay.empty() && config.topic.empty()) return {};
    return invalid_field(flag, std::string(flag) + " is of no use without --kv-events");
  }
  for (const auto& [flag, endpoint] :
       {std::pair("--kv-events", config.endpoint), std::pair("--kv-events-replay", config.replay)}) {
    if (endpoint.empty()) continue;
    const Result<bool> server = listens(endpoint);
    if (!server) return invalid_field(flag, std::string(flag) + ' ' + endpoint + ": " + server.error().message);
  }
  if (models < 2) return {};
  if (!config.replay.empty()) {
    return invalid_field("--kv-events-replay",
                         "--kv-events-replay is for one model, since its answers do not say of which model they are");
  }
  if (!config.topic.empty() && config.topic.find(kModelPlace) == std::string::npos) {
    return invalid_field("--kv-events-topic", "--kv-events-topic needs {model} where there are several models");
  }
  return {};
}

}  // namespace chasqui::publish
