// What a run found, as text for people and as JSON for scripts. Pure functions; any thread.
#pragma once

#include <string>

#include "bench/run.h"

namespace chasqui::bench {

std::string report_text(const RunReport& report);
// One object and a line end. Times are in milliseconds unless the name says otherwise.
std::string report_json(const RunReport& report);

}  // namespace chasqui::bench
