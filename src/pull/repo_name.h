// What a user types who means a repository of the hub: USER/REPO, USER/REPO:QUANT, or the same behind the address of
// the hub. A plain value; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui::pull {

struct RepoName {
  std::string repo;   // USER/REPO
  std::string quant;  // as it was typed; empty: none
};

// Errors say how such a name is written. What it gives can be part of a path and of an address.
Result<RepoName> read_repo_name(std::string_view typed);

}  // namespace chasqui::pull
