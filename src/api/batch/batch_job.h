// A batch of /v1/batches: what is said of it, on disk as ID.job beside its results in ID.results (jobs/record_journal),
// and to clients. Owned by the BatchDesk, run by the BatchRunner; loop thread. The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/batch/batch_line.h"
#include "base/error.h"
#include "base/json_writer.h"

namespace chasqui {

enum class BatchStatus { validating, failed, in_progress, finalizing, completed, expired, cancelling, cancelled };

constexpr std::string_view kBatchStatuses[] = {"validating", "failed",  "in_progress", "finalizing",
                                               "completed",  "expired", "cancelling",  "cancelled"};
constexpr std::size_t kBatchStatusCount = std::size(kBatchStatuses);
constexpr std::string_view name(BatchStatus status) { return kBatchStatuses[static_cast<std::size_t>(status)]; }

// Nothing of it changes any more.
constexpr bool has_ended(BatchStatus status) {
  return status == BatchStatus::failed || status == BatchStatus::completed || status == BatchStatus::expired ||
         status == BatchStatus::cancelled;
}

struct BatchCounts {
  std::size_t total = 0;
  std::size_t completed = 0;  // answered with 200
  std::size_t failed = 0;     // … with an error
};

struct BatchJob {
  std::string id;           // "batch_…", made by the server
  std::uint64_t owner = 0;  // the tenant's lasting name
  std::uint64_t serial = 0;
  std::string input_file;
  std::string endpoint;
  std::string window;  // as the client said it
  std::vector<std::pair<std::string, std::string>> metadata{};
  std::int64_t output_seconds = 0;  // how long results are kept; 0: as the batch
  BatchStatus status = BatchStatus::validating;
  BatchStatus end = BatchStatus::completed;  // what it becomes once its results are written
  // Unix times; 0: not yet.
  std::int64_t created = 0;
  std::int64_t expires = 0;
  std::int64_t in_progress = 0;
  std::int64_t finalizing = 0;
  std::int64_t cancelling = 0;
  std::int64_t ended = 0;
  // Named when the batch is made, so that results that are written again get the same names.
  std::string output_file;
  std::string error_file;
  bool has_output = false;
  bool has_errors = false;
  BatchCounts counts{};
  std::vector<LineFault> faults{};
};

using BatchJobPtr = std::shared_ptr<BatchJob>;

inline std::string job_name(const std::string& id) { return id + ".job"; }
inline std::string results_name(const std::string& id) { return id + ".results"; }

void write_job(JsonWriter& json, const BatchJob& job);
std::string job_text(const BatchJob& job);
Result<BatchJob> read_job(std::string_view text);

// "24h", "30m", "7d", "90s": seconds. Nothing for other texts, and for more than the limit.
std::optional<std::int64_t> window_seconds(std::string_view window);

}  // namespace chasqui
