// What a handler of a route gets: one request, whose it is, and the model that it is for. A value that lives in the
// handler's coroutine; what it refers to outlives the handler. Loop thread.
#pragma once

#include <string>

#include "api/core/key_ring.h"
#include "net/awaitable.h"
#include "net/exchange.h"

namespace chasqui {

struct Frontend;
class ModelTable;
struct ServedModel;

struct Call {
  net::HttpExchange& exchange;
  Frontend& frontend;
  ServedModel& served;
  Caller caller{};
  std::string body{};  // moved on by the handler that reads it
};

// What a handler comes to: nothing more to say, or an error that the route's dialect puts into words.
using Handled = net::Awaitable<Result<void>>;

}  // namespace chasqui
