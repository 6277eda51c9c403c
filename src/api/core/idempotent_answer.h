// Answers a request that has an Idempotency-Key: its handler runs for the first one with the key, and the others get
// what was answered, with `Idempotent-Replayed: true`. The same key with another request is 422, and while the first is
// under way 409. What is not answered with 200, or is too long, may be sent again. Loop thread.
#pragma once

#include <functional>
#include <string>

#include "api/core/call.h"
#include "api/core/dialect.h"

namespace chasqui {

Handled answer_once(Call call, std::string key, const Dialect& dialect, std::function<Handled(Call)> handler);

}  // namespace chasqui
