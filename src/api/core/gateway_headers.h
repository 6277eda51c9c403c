// What gateways say about a request in its headers, as llm-d's endpoint picker does: which group it belongs to, and how
// soon its tokens should come. The old names of these headers count where the new ones are not sent. A plain value.
//
//   x-llm-d-inference-fairness-id   (x-gateway-inference-fairness-id)  a group of requests within the key's tenant
//   x-llm-d-slo-ttft-ms             (x-slo-ttft-ms)                    target of the first token, in milliseconds
//   x-llm-d-slo-tpot-ms             (x-slo-tpot-ms)                    … of each token after it
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/error.h"
#include "net/http_request.h"

namespace chasqui {

struct GatewayHeaders {
  std::uint32_t group = 0;  // 0: none is named
  Duration ttft{};          // zero: as the class has it
  Duration tpot{};          // likewise
};

// Errors name the header.
Result<GatewayHeaders> read_gateway_headers(const net::HttpRequest& request);

}  // namespace chasqui
