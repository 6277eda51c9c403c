// Sends the spans of ended requests to a collector (OTLP over HTTP, JSON), in batches, about once a second. Bounded:
// when the collector is slow or gone, spans are dropped and counted, and no request waits. Loop thread only, but for
// the writing of JSON, which the offload pool does. Owned by the application; must be destroyed after the loop has
// stopped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/core/request_log.h"
#include "api/observe/span_json.h"
#include "base/limits.h"
#include "base/metric_set.h"
#include "net/event_signal.h"
#include "net/http_post.h"
#include "net/offload.h"

namespace chasqui {

class SpanExporter {
 public:
  static constexpr std::size_t kQueueMax = kSizeLimit<"spans_queued">;  // requests
  static constexpr std::size_t kBatchMax = 256;

  SpanExporter(net::EventLoop& loop, net::OffloadPool& offload, net::HttpTarget collector, SpanSource source);

  // One that its caller does not want sampled is not kept.
  void add(const std::shared_ptr<RequestRecord>& record);
  // Sends what is left, and then calls `done`; at the latest after a few seconds.
  void finish(std::function<void()> done);
  const MetricSet& metrics() const { return metrics_; }

 private:
  net::Awaitable<void> run();
  net::Awaitable<void> send_batch();

  net::EventLoop& loop_;
  net::OffloadPool& offload_;
  const net::HttpTarget collector_;
  std::optional<net::TlsTrust> trust_;  // of https
  SpanSource source_;
  net::EventSignal wake_;
  std::deque<std::shared_ptr<RequestRecord>> queue_;
  std::function<void()> done_;
  bool failing_ = false;  // said in the log
  MetricSet metrics_;
  Counter sent_{metrics_, {"chasqui_traces_sent_total", "Requests whose spans the collector took."}};
  Counter dropped_full_{
      metrics_, {"chasqui_traces_dropped_total", "Requests whose spans were dropped, by reason.", "reason=\"queue\""}};
  Counter dropped_failed_{metrics_, {"chasqui_traces_dropped_total", {}, "reason=\"collector\""}};
};

}  // namespace chasqui
