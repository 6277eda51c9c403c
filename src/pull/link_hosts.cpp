#include "pull/link_hosts.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/ascii.h"

namespace chasqui::pull {
namespace {

bool is_host_name(std::string_view text) {
  const auto fits = [](char c) { return is_ascii_word_or("-._", c); };
  return !text.empty() && text.front() != '.' && text.back() != '.' && std::ranges::all_of(text, fits);
}

std::optional<std::uint16_t> port_in(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool number = failed == std::errc{} && end == text.data() + text.size() && port > 0;
  return number ? std::optional(port) : std::nullopt;
}

}  // namespace

Result<LinkHosts> LinkHosts::parse(const std::vector<std::string>& list) {
  LinkHosts out;
  for (const std::string& given : list) {
    const Error wrong{ErrorCode::invalid_request,
                      "must be hosts such as images.example, *.example or images.example:8443, or *: " + given, ""};
    Host& host = out.hosts_.emplace_back();
    std::string text = in_small_letters(given);
    const std::size_t colon = text.rfind(':');
    if (colon != text.npos) {
      const auto port = port_in(std::string_view(text).substr(colon + 1));
      if (!port) return wrong;
      host.port = *port;
      text.resize(colon);
    }
    if (text == "*") continue;
    host.exact = !text.starts_with("*.");
    host.name = host.exact ? text : text.substr(1);
    if (!is_host_name(host.exact ? text : text.substr(2))) return wrong;
  }
  return out;
}

Reach LinkHosts::reach(std::string_view scheme, std::string_view host, std::uint16_t port) const {
  std::string name = in_small_letters(host);
  if (name.ends_with('.')) name.pop_back();  // as resolvers see it
  const std::uint16_t usual = scheme == "https" ? 443 : 80;
  Reach most = Reach::none;
  for (const Host& one : hosts_) {
    if ((one.port != 0 ? one.port : usual) != port) continue;
    const bool fits = one.exact ? name == one.name : name.size() > one.name.size() && name.ends_with(one.name);
    if (fits) most = std::max(most, one.exact ? Reach::all : Reach::public_addresses);
  }
  return most;
}

}  // namespace chasqui::pull
