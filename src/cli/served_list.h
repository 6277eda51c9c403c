// `chasqui ps`: the models of a running server: which are loaded, and until when. Blocks; the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace chasqui::cli {

struct ServedListOptions {
  std::string url;
  std::string api_key;
  bool all = false;   // those that are not loaded, too
  bool json = false;  // as GET /v1/models has them
};

// One line of the list.
struct ServedLine {
  std::string name;
  std::string state;        // "loaded", "loading 40 %", "failed: why"
  std::uint64_t bytes = 0;  // of memory, without its prefix cache; 0: not known
  std::string leaves;       // when it is unloaded: "in 4 min", "for others", "never"
};

// `body`: of GET /v1/models. Adapters are left out. Errors: it is of another form.
Result<std::vector<ServedLine>> served_lines(const std::string& body, bool all);

// 0; 1 when the server did not answer.
int print_served(const ServedListOptions& options);

}  // namespace chasqui::cli
