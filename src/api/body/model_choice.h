// Which model of the node a request is for. A node of one model for which no request waits does not look; otherwise the
// body is parsed for its `model` in the offload pool, since a large one would hold the loop. Loop thread.
#pragma once

#include <functional>
#include <string>

#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/model_table.h"
#include "net/awaitable.h"

namespace chasqui {

struct ModelChoice {
  const ModelEntry* entry = nullptr;
  bool stream = false;     // the body asks for one; false also where it was not looked at
  std::string previous{};  // the response that it goes on with, as far as it was looked at
};

// Of a request with a body, which is back in `body` afterwards; `otherwise` where it names none. The errors: no such
// model, no JSON.
// `gone`: the client has left. Loop thread.
net::Awaitable<Result<ModelChoice>> choose_model(const ModelTable& models, Frontend& frontend, Caller caller,
                                                 std::string& body, const ModelEntry& otherwise,
                                                 std::function<bool()> gone);

}  // namespace chasqui
