// The queue that --batch-queue names by its URL. At start; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "jobs/line_queue.h"

namespace chasqui::store {

// Whether the URL is one, and this machine has what it takes. Nothing is connected. Errors name the flag, and never a
// password.
Result<void> check_line_queue(const std::string& url);

// REQUIRES: it was checked. `clock` outlives it.
std::unique_ptr<LineQueue> make_line_queue(const std::string& url, const Clock& clock);

}  // namespace chasqui::store
