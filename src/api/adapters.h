// GET and POST /lora-adapters, as llama-server has them: what is loaded, and what requests get that say nothing. Loop.
#pragma once

#include "api/service.h"
#include "net/exchange.h"

namespace chasqui {

net::Awaitable<void> handle_adapters(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_set_adapters(Service& service, net::HttpExchange& exchange);

}  // namespace chasqui
