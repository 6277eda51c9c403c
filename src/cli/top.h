// `chasqui top`: asks a server for its metrics again and again, and draws them. Blocks; the main thread.
#pragma once

#include <string>

#include "base/clock.h"

namespace chasqui::cli {

struct TopOptions {
  std::string url;
  std::string api_key;
  Duration interval = seconds(1);
  bool once = false;  // two samples an interval apart, one picture, and out
};

// 0; 1 when the server did not answer at the start.
int top(const TopOptions& options);

}  // namespace chasqui::cli
