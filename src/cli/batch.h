// `chasqui batch`: files of requests that a running server answers in the background (docs/batches.md): submits them,
// follows them, fetches their answers. Any server with OpenAI's Files and Batch API will do. Blocks; the main thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui::cli {

struct BatchOptions {
  std::string url;
  std::string api_key;
  std::string action;          // run, submit, list, show, fetch, cancel
  std::string what;            // the file of run and submit, the id of show, fetch and cancel
  std::string endpoint;        // of all lines; empty: the first line's
  std::string window = "24h";  // in which they are to be answered
  std::string out;             // file for the answers; empty or -: standard output
  bool wait = false;           // fetch: until the batch has ended
  bool json = false;           // list and show: as the server says it
};

// 0; 1 when something failed, lines of the batch among it; 2 for what was typed; 130 when it was interrupted, while the
// batch goes on.
int run_batch(const BatchOptions& options);

// The `url` of the first line that is not blank. Errors: it is no JSON object, or has none.
Result<std::string> endpoint_of(std::string_view lines);

// An upload of `content` as OpenAI's clients make it.
struct Upload {
  std::string type;  // Content-Type
  std::string body;
};
Upload upload_of(std::string_view name, std::string_view content);

}  // namespace chasqui::cli
