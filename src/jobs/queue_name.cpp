#include "jobs/queue_name.h"

#include "base/log.h"
#include "base/random_id.h"
#include "jobs/line_message.h"

namespace chasqui {
namespace {

const std::string kQueueNameFile = "queue-name";

}  // namespace

std::string queue_name_of(JobFolder& folder) {
  const auto kept = folder.read(kQueueNameFile, 256);
  if (kept && is_queue_name(*kept)) return *kept;
  std::string name = random_id("node_");
  if (auto put = folder.put(kQueueNameFile, name); !put) {
    log_error("this node's name in the batch queue is not kept: after a restart results do not find it",
              {{"reason", put.error().message}});
  }
  return name;
}

}  // namespace chasqui
