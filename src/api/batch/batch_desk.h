// What the routes of files and batches work with. Owned by the application; loop thread.
#pragma once

#include "api/batch/batch_runner.h"
#include "api/batch/batch_store.h"
#include "api/core/call.h"

namespace chasqui {

class BatchDesk {
 public:
  BatchDesk(BatchStore& shown, BatchRunner& used) : store(shown), runner(used) {}

  BatchStore& store;
  BatchRunner& runner;
};

// What a route does with a request; errors are told by the caller.
using BatchCommand = Handled (*)(BatchDesk&, Call);

// Runs it, or says which flag is missing.
Handled handle_batch_command(Call call, BatchCommand command);

Handled upload_file(BatchDesk& desk, Call call);
Handled list_files(BatchDesk& desk, Call call);
Handled show_file(BatchDesk& desk, Call call);
Handled delete_file(BatchDesk& desk, Call call);
Handled send_file(BatchDesk& desk, Call call);

Handled create_batch(BatchDesk& desk, Call call);
Handled list_batches(BatchDesk& desk, Call call);
Handled show_batch(BatchDesk& desk, Call call);
Handled cancel_batch(BatchDesk& desk, Call call);

}  // namespace chasqui
