// What is counted of files and batches. Owned by the BatchStore; written on the loop.
#pragma once

#include "api/batch/batch_job.h"
#include "base/metric_set.h"

namespace chasqui {

struct BatchMetrics : MetricSet {
  static MetricRow status_row(std::size_t i) {
    return {"chasqui_batches", i == 0 ? "Batches that are kept, by status." : "",
            metric_label("status", kBatchStatuses[i])};
  }
  MetricArray<Gauge, kBatchStatusCount> batches{*this, &status_row};
  Gauge files{*this, {"chasqui_batch_files", "Files of /v1/files."}};
  Gauge disk_bytes{
      *this, {"chasqui_batch_disk_bytes", "Bytes of files, of results, and of the files that these results will be."}};
  Gauge lines_waiting{*this, {"chasqui_batch_lines_waiting", "Lines of batches without an answer on disk."}};
  Gauge lines_running{*this, {"chasqui_batch_lines_running", "Of them, those that run."}};
  Counter completed{*this, {"chasqui_batch_lines_total", "Lines of batches by result.", "result=\"completed\""}};
  Counter failed{*this, {"chasqui_batch_lines_total", {}, "result=\"failed\""}};
  Counter expired{*this, {"chasqui_batch_lines_total", {}, "result=\"expired\""}};
  Counter cancelled{*this, {"chasqui_batch_lines_total", {}, "result=\"cancelled\""}};
  Counter retries{*this,
                  {"chasqui_batch_retries_total", "Lines put back because the server was busy or failed to answer."}};
  Counter write_failures{*this,
                         {"chasqui_batch_write_failures_total", "Writes to the folder of --batch-dir that failed."}};
  Histogram write_seconds{*this, {"chasqui_batch_write_seconds", "Time until results of lines were on disk."}};
};

}  // namespace chasqui
