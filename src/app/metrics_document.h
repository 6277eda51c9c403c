// `chasqui metrics`: docs/metrics.md, made from the same lists as GET /metrics. A test compares it with the file.
#pragma once

#include <string>

namespace chasqui {

std::string metrics_document();
// Prints it. Returns the exit code.
int print_metrics_document();

}  // namespace chasqui
