#include "api/observe/span_exporter.h"

#include <algorithm>

#include "base/log.h"
#include "base/wall_time.h"

namespace chasqui {
namespace {

constexpr Duration kExportEvery = seconds(1);
constexpr Duration kLimit = seconds(5);      // for one batch
constexpr Duration kLastLimit = seconds(2);  // … at the end of the process

}  // namespace

SpanExporter::SpanExporter(net::EventLoop& loop, net::OffloadPool& offload, net::HttpTarget collector,
                           SpanSource source)
    : loop_(loop), offload_(offload), collector_(std::move(collector)), source_(std::move(source)), wake_(loop) {
  if (collector_.tls) trust_.emplace();
  loop_.spawn(run(), "span exporter");
}

void SpanExporter::add(const std::shared_ptr<RequestRecord>& record) {
  if (!record->trace.sampled) return;
  if (queue_.size() >= kQueueMax) return dropped_full_.add();
  queue_.push_back(record);
  if (queue_.size() == kBatchMax) wake_.notify();
}

void SpanExporter::finish(std::function<void()> done) {
  done_ = std::move(done);
  wake_.notify();
}

net::Awaitable<void> SpanExporter::run() {
  for (;;) {
    if (queue_.size() < kBatchMax && !done_) co_await wake_.wait_until(loop_.now() + kExportEvery);
    if (!queue_.empty()) co_await send_batch();
    if (!done_ || (!queue_.empty() && !failing_)) continue;
    done_();
    co_return;
  }
}

net::Awaitable<void> SpanExporter::send_batch() {
  const std::size_t count = std::min(queue_.size(), kBatchMax);
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<std::shared_ptr<RequestRecord>> batch(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  source_.unix_zero = unix_nanoseconds_of_zero();
  auto work = [batch = std::move(batch), source = source_] { return spans_json(batch, source); };
  Result<std::string> body = co_await offload_.run(std::move(work));
  if (!body) {
    dropped_failed_.add(count);
    co_return;
  }
  std::string json = std::move(*body);
  net::HttpTarget target = collector_;
  net::TlsTrust* trust = trust_ ? &*trust_ : nullptr;
  Duration limit = kLimit;
  if (done_) limit = kLastLimit;
  const Result<int> status =
      co_await net::http_post(loop_, std::move(target), trust, "application/json", std::move(json), limit);
  const bool good = status && *status >= 200 && *status < 300;
  (good ? sent_ : dropped_failed_).add(count);
  if (good == !failing_) co_return;
  failing_ = !good;
  if (good) {
    log_info("the collector of spans is back");
  } else {
    const std::string why = status ? "status " + std::to_string(*status) : status.error().message;
    log_warning("spans are dropped: the collector does not take them", {{"reason", why}});
  }
}

}  // namespace chasqui
