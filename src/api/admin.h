// What people and machines ask about the server itself: GET /health, /ready, /metrics, /v1/models, /props. Nothing
// here waits for the worker: answers come from constants and atomics. Loop thread.
#pragma once

#include <string>

#include "api/service.h"
#include "net/exchange.h"

namespace chasqui {

// 200 while the loop (which answers this) and all workers move; 503 when a step of one hangs.
net::Awaitable<void> handle_health(Service& service, net::HttpExchange& exchange);
// 200 when new work is welcome; 503 while draining or hanging. For load balancers.
net::Awaitable<void> handle_ready(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_metrics(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_models(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_model(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_version(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_props(Service& service, net::HttpExchange& exchange);
// 501: nothing of the server changes while it runs.
net::Awaitable<void> handle_change_props(Service& service, net::HttpExchange& exchange);

// What GET /health and GET /props say, for doors that are not HTTP's.
Result<std::string> health_answer(const Service& service);
std::string props_answer(const Service& service, const Caller& caller);

}  // namespace chasqui
