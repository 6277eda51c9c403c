// The page at "/" and what belongs to it, out of the binary. It needs no key: it holds no client's data,
// and a browser has no way to send one with an address. What it asks for afterwards needs one. Loop thread.
#pragma once

#include <array>

#include "net/awaitable.h"
#include "net/exchange.h"

namespace chasqui {

inline constexpr std::array kPagePaths = {"/", "/page.js", "/page.css", "/favicon.svg", "/favicon.ico"};

// REQUIRES: the request's path is one of kPagePaths.
net::Awaitable<void> handle_page(net::HttpExchange& exchange);

}  // namespace chasqui
