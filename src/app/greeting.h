// The request that a start prints for people to try, as a command for sh that works as it is printed where the shell
// has what the server has. Keys are no output: the command finds one where the server has found it, in the environment
// or in the key file, or says that people have to bring it. Reads the key file; at start only.
#pragma once

#include <string>

#include "app/config.h"

namespace chasqui {

// "try: curl …" and its end of line. `url` is what a client on this machine can ask.
std::string request_to_try(const ServeConfig& config, const std::string& url, bool tls);

}  // namespace chasqui
