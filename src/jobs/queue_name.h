// What a node is called in the queue of --batch-queue: drawn once, and kept in the folder of --batch-dir, so that
// results find it when it was started again. At start; any thread.
#pragma once

#include <string>

#include "jobs/job_folder.h"

namespace chasqui {

// Where the folder does not take it, a name for this process alone; that is logged.
std::string queue_name_of(JobFolder& folder);

}  // namespace chasqui
