#include "bench/target.h"

#include <charconv>

namespace chasqui::bench {
namespace {

Error bad(std::string_view url) {
  return invalid_field("url", "--url: \"" + std::string(url) + "\" must be http://host:port or unix:path");
}

}  // namespace

Result<Target> parse_target(std::string_view url) {
  Target target;
  if (url.starts_with("unix:")) {
    target.socket_path = url.substr(5);
    target.host_header = "localhost";
    if (target.socket_path.empty() || target.socket_path.size() > 107) return bad(url);
    return target;
  }
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return bad(url);
  std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  target.base = rest.substr(slash);
  while (target.base.ends_with('/')) target.base.pop_back();
  if (target.base.ends_with("/v1")) target.base.resize(target.base.size() - 3);
  rest = rest.substr(0, slash);
  target.host_header = rest;

  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) return bad(url);
  const std::size_t colon = rest.find(':', bracket);
  std::string_view host = rest.substr(0, colon);
  if (bracket > 0) host = host.substr(1, bracket - 1);
  target.host = host;
  if (target.host.empty()) return bad(url);
  if (colon == std::string_view::npos) return target;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (error != std::errc() || end != port.data() + port.size() || target.port == 0) return bad(url);
  return target;
}

}  // namespace chasqui::bench
