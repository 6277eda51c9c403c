// The part of Worker that has pictures and sounds of prompts encoded beside its steps.
#include <utility>

#include "engine/worker.h"

namespace chasqui {

std::unique_ptr<MediaEncodings> Worker::start_encodings(Parts& parts) {
  auto encoder = model_->encoder();
  if (!encoder && !parts.encodings) return nullptr;
  return std::make_unique<MediaEncodings>(
      std::move(encoder), MediaEncodings::Keeping{std::move(parts.encodings), parts.scheduler.reuse.shared_by_tenants},
      clock_,
      [this](EncodingOutcome outcome) {
        std::vector<Command> one;
        one.emplace_back(std::move(outcome));
        inbox_.push_all(one);  // never refused: a sequence waits for it
      },
      number_);
}

void Worker::order_encodings() {
  if (!encodings_) return;
  scheduler_.take_encoding_orders(encoding_orders_);
  encodings_->order(encoding_orders_);
}

void Worker::take_encoding(EncodingOutcome outcome, TimePoint now) {
  if (!outcome.error) {
    metrics_.count_encoding(outcome.fresh, outcome.took);
    if (outcome.read) metrics_.media_read.add();
  }
  scheduler_.encoded(outcome, now);
  encodings_->hold(std::move(outcome));
}

// All places of a unit are read. REQUIRES: its request is still here
void Worker::release_encoding() {
  if (!encodings_ || batch_.unit == nullptr || result_.status != DecodeStatus::ok) return;
  const bool last = batch_.rows.back().position + 1 == batch_.unit->begin + batch_.unit->positions;
  if (last) encodings_->release(batch_.parts.front().request->id);
}

}  // namespace chasqui
