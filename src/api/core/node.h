// The whole server as its routes see it: what all requests share, the table of models, metrics and what the operator
// has set. Made by the application, outlives the loop. Loop thread. Only routes, the doors of the local socket and what
// administers the server include this; a handler gets a Call, and what reads a body gets its ServedModel.
#pragma once

#include <cstddef>
#include <string>

#include "api/core/frontend.h"
#include "api/core/model_table.h"
#include "net/frame_limits.h"
#include "net/http_limits.h"
#include "net/web_policy.h"

namespace chasqui {

class AdapterLoader;
class DrainControl;
class MetricsPage;

struct NodeConfig {
  FrontendConfig frontend{};
  net::HttpLimits http{};
  net::FrameLimits frames{};
  std::size_t unread_max = kSizeLimit<"unread_bytes">;  // bytes that may wait for a client that does not read
  Duration drain_time{};                                // shown in /props
  bool page = true;                                     // at "/"
  std::string page_policy{};                            // of browsers for it, see api/admin/page.h
  net::WebPolicy web{};                                 // what browsers are told
  std::string api_prefix{};                             // in front of every path
};

struct Node {
  const NodeConfig& config;
  Frontend frontend;
  const MetricsPage& metrics;
  ModelTable models{};
  std::string openapi{};              // the document of its routes, made with them
  DrainControl* drain = nullptr;      // null until the server is open
  AdapterLoader* adapters = nullptr;  // null in tests alone
};

}  // namespace chasqui
