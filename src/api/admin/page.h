// The page at "/" and what belongs to it, out of the binary. It needs no key: it holds no client's data,
// and a browser has no way to send one with an address. What it asks for afterwards needs one. Loop thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "net/awaitable.h"
#include "net/exchange.h"

namespace chasqui {

// "/pdf.js" is asked for when a PDF is attached, and not before.
inline constexpr std::array kPagePaths = {"/", "/page.js", "/page.css", "/favicon.svg", "/favicon.ico", "/pdf.js"};

// What the page may do in a browser: the value of Content-Security-Policy. `mcp_origins`: MCP servers that it may ask.
std::string page_policy(const std::vector<std::string>& mcp_origins);

// REQUIRES: the request's path is one of kPagePaths. `policy` outlives the exchange.
net::Awaitable<void> handle_page(net::HttpExchange& exchange, std::string_view policy);

}  // namespace chasqui
