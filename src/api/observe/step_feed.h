// GET /debug/steps: every step of every worker as server-sent events, for the page's view of the batch. The first event
// says what the steps are to keep, each later one has the steps of a twentieth of a second. Workers notice nothing:
// they write their rings anyway (engine/step_ring.h). Loop thread.
#pragma once

#include <string>
#include <vector>

#include "api/core/call.h"
#include "base/limits.h"
#include "engine/engine.h"

namespace chasqui {

// Watchers at once; one more is refused.
inline constexpr std::size_t kStepWatchersMax = kSizeLimit<"step_watchers">;

Handled handle_step_feed(Call call);

// What one watcher has seen. Begins with the newest step at the time.
class StepReader {
 public:
  explicit StepReader(const Engine& engine);

  // Appends one event with the steps since the last call, at most kStepsKept of each worker; nothing when there are
  // none.
  void append_new(std::string& out);

 private:
  const Engine& engine_;
  std::vector<std::uint64_t> next_;  // by worker
};

// What the steps are to keep: targets, slots, cells.
void append_promise(const Engine& engine, std::string& out);

}  // namespace chasqui
