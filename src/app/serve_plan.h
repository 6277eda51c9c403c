// What `chasqui serve` needs and can know before it reads a model: keys, certificate, listeners, files that flags name,
// and whether the flags go together. Everything in it is checked, so that wrong use ends within milliseconds (exit code
// 2) instead of after a model was loaded. `chasqui doctor` makes the same plan. At start only.
#pragma once

#include <optional>
#include <vector>

#include "api/core/key_list.h"
#include "app/config.h"
#include "app/listeners.h"
#include "base/error.h"
#include "model/loaded_model.h"
#include "net/http_post.h"
#include "net/tls_endpoint.h"

namespace chasqui {

struct ServePlan {
  std::vector<KeyLine> keys;
  net::TlsIdentity tls;  // null: plain HTTP
  Listeners listeners;   // nothing is open yet, but each address is free
  std::optional<net::HttpTarget> collector;
  std::vector<LoadOptions> loads;  // of each of config.models, without the progress bar
};

// The part of it that is about one model.
Result<LoadOptions> plan_model(ServeConfig& model);

// The first mistake, by its flag, and where its value came from if that was not typed. Says in config.models which
// speculation an unnamed draft file is for.
Result<ServePlan> plan_serve(ServeConfig& config);

}  // namespace chasqui
