#include "engine/media_encodings.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "base/thread_name.h"

namespace chasqui {

MediaEncodings::MediaEncodings(std::shared_ptr<MediaEncoder> encoder, const Clock& clock, Deliver deliver,
                               std::size_t worker)
    : encoder_(std::move(encoder)),
      clock_(clock),
      deliver_(std::move(deliver)),
      inbox_(1),  // beyond it: there is one order for a slot
      thread_([this, worker] {
        name_this_thread("encoder-" + std::to_string(worker));
        run();
      }) {}

MediaEncodings::~MediaEncodings() {
  for (auto& [request, mine] : mine_) mine.wanted->store(false, std::memory_order_relaxed);
  inbox_.close();
  thread_.join();
}

void MediaEncodings::order(std::vector<EncodingOrder>& orders) {
  for (EncodingOrder& order : orders) {
    Mine& mine = mine_[order.request->id];
    if (!mine.wanted) mine.wanted = std::make_shared<std::atomic<bool>>(true);
    to_encode_.push_back({std::move(order), mine.wanted});
  }
  orders.clear();
  inbox_.push_all(to_encode_);
}

void MediaEncodings::hold(EncodingOutcome outcome) {
  const auto mine = mine_.find(outcome.request);
  if (mine != mine_.end()) mine->second.rows = std::move(outcome.rows);
}

void MediaEncodings::forget(RequestId request) {
  const auto mine = mine_.find(request);
  if (mine == mine_.end()) return;
  mine->second.wanted->store(false, std::memory_order_relaxed);
  mine_.erase(mine);
}

void MediaEncodings::run() {
  std::vector<Ordered> orders;
  for (;;) {
    inbox_.drain(orders, Wait::yes);
    if (orders.empty()) return;  // closed
    for (const Ordered& ordered : orders) {
      if (ordered.wanted->load(std::memory_order_relaxed)) encode(ordered);
    }
  }
}

void MediaEncodings::encode(const Ordered& ordered) {
  const Request& request = *ordered.order.request;
  const TimePoint started = clock_.now();
  auto encoded = encoder_->encode(*unit_at(request.media, ordered.order.begin), request.tenant.id);
  EncodingOutcome outcome{.request = request.id, .begin = ordered.order.begin, .took = clock_.now() - started};
  if (encoded) {
    outcome.fresh = encoded->fresh;
    outcome.rows = std::move(encoded->rows);
  } else {
    log_error("a picture or a sound cannot be encoded", {{"reason", encoded.error().message}});
    outcome.error = encoded.error();
  }
  deliver_(std::move(outcome));
}

}  // namespace chasqui
