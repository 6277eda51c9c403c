// What is counted of the queue of --batch-queue. Owned by what runs it; written by the thread of the queue and the
// loop.
#pragma once

#include "base/metric_set.h"

namespace chasqui {

struct QueueMetrics : MetricSet {
  Gauge up{*this, {"chasqui_batch_queue_up", "1 while the broker of --batch-queue answers."}};
  Counter errors{*this, {"chasqui_batch_queue_errors_total", "Calls that the broker has not answered as it should."}};
  Counter published{
      *this, {"chasqui_batch_queue_lines_total", "Lines of --batch-queue by what was done.", "event=\"published\""}};
  Counter taken{*this, {"chasqui_batch_queue_lines_total", {}, "event=\"taken\""}};
  Counter redelivered{*this, {"chasqui_batch_queue_lines_total", {}, "event=\"redelivered\""}};
  Counter given_back{*this, {"chasqui_batch_queue_lines_total", {}, "event=\"given_back\""}};
  Counter answered{*this, {"chasqui_batch_queue_lines_total", {}, "event=\"answered\""}};
  Counter withdrawn{*this, {"chasqui_batch_queue_lines_total", {}, "event=\"withdrawn\""}};
  Counter recalled{*this, {"chasqui_batch_queue_lines_total", {}, "event=\"recalled\""}};
  Counter results{*this, {"chasqui_batch_queue_results_total", "Results for batches of this node.", "is=\"used\""}};
  Counter duplicates{*this, {"chasqui_batch_queue_results_total", {}, "is=\"dropped\""}};
  Counter unreadable{*this,
                     {"chasqui_batch_queue_unreadable_total", "Messages of the broker that were none of a node."}};
  Gauge away{*this, {"chasqui_batch_queue_lines_away", "Lines of this node's batches that are in the queue."}};
  Gauge away_bytes{*this, {"chasqui_batch_queue_away_bytes", "Requests of these lines."}};
  Gauge result_bytes{
      *this, {"chasqui_batch_queue_result_bytes", "Results that have come from the queue and are not on disk yet."}};
  Gauge held{*this, {"chasqui_batch_queue_lines_held", "Lines of the queue that this node has taken."}};
};

}  // namespace chasqui
