// Workloads as files: one JSON object on each line, see docs/simulator.md for the fields. Read completely before the
// simulation starts; a wrong line is refused with its number and field. One thread.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/workload.h"

namespace chasqui {

class TraceWorkload final : public Workload {
 public:
  // `name` stands before the line number in errors: name:line: field: message.
  static Result<TraceWorkload> read(std::istream& in, const std::string& name);

  bool next(PlannedRequest& request) override;
  std::size_t size() const { return requests_.size(); }

 private:
  std::vector<PlannedRequest> requests_;  // in the order of their times
  std::size_t next_ = 0;
};

// The line of one request, with its end of line.
void append_trace_line(std::string& out, const PlannedRequest& request, const Workload& workload);

}  // namespace chasqui
