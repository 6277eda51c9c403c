// What a refusal of the hub means for its user, and what to do about it. Pure; any thread.
#pragma once

#include <string>

#include "base/error.h"
#include "pull/transfer.h"

namespace chasqui::pull {

// What was asked for.
struct HubQuestion {
  std::string endpoint;
  std::string repo;
  std::string revision;
  std::string file;  // empty: the list of files
  bool with_token = false;
};

// REQUIRES: it was not answered, or with another status than 200 and 206. The code is `unavailable` where trying again
// makes sense.
Error refusal_of(const HubQuestion& question, const TransferAnswer& answer);

}  // namespace chasqui::pull
