#include "api/core/gateway_headers.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "net/sha256.h"

namespace chasqui {
namespace {

constexpr double kMostMs = 3'600'000;

struct Said {
  std::string_view name;
  std::string_view value;
};

std::optional<Said> said(const net::HttpRequest& request, std::string_view name, std::string_view old_name) {
  for (const std::string_view each : {name, old_name}) {
    if (const auto value = request.header(each)) return Said{each, *value};
  }
  return std::nullopt;
}

Result<Duration> read_target(const net::HttpRequest& request, std::string_view name, std::string_view old_name) {
  const auto target = said(request, name, old_name);
  if (!target) return Duration::zero();
  double ms = 0;
  const char* const end = target->value.data() + target->value.size();
  const auto [last, failed] = std::from_chars(target->value.data(), end, ms);
  if (failed != std::errc{} || last != end || !(ms >= 1 && ms <= kMostMs)) {
    return invalid_field(std::string(target->name),
                         std::string(target->name) + " must be a number of milliseconds between 1 and 3600000");
  }
  return from_milliseconds(ms);
}

Result<std::uint32_t> read_group(const net::HttpRequest& request) {
  const auto id = said(request, "x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id");
  if (!id || id->value.empty()) return 0u;
  const bool plain = std::ranges::all_of(id->value, [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain || id->value.size() > kSizeLimit<"fairness_id_bytes">) {
    return invalid_field(std::string(id->name), std::string(id->name) + " must be at most " +
                                                    std::to_string(kSizeLimit<"fairness_id_bytes">) +
                                                    " printable characters of ASCII");
  }
  // Two ids that have the same number share what one of them would have: it happens once in billions.
  const net::Sha256 hash = net::sha256({id->value});
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < sizeof group; ++i) group = group << 8 | hash[i];
  return std::max(group, 1u);
}

}  // namespace

Result<GatewayHeaders> read_gateway_headers(const net::HttpRequest& request) {
  const auto group = read_group(request);
  if (!group) return group.error();
  const auto ttft = read_target(request, "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms");
  if (!ttft) return ttft.error();
  const auto tpot = read_target(request, "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms");
  if (!tpot) return tpot.error();
  return GatewayHeaders{*group, *ttft, *tpot};
}

}  // namespace chasqui
