// The thread that encodes the pictures and sounds of one worker's prompts, so that its steps do not wait for that.
// Takes orders through a mailbox, in the order in which sequences came to a unit (one at a time of each), and hands
// what came of them to `deliver`, which runs on its thread and must not block. Workers of a model share the encoder,
// where their threads wait for each other. Owned by the Worker; bounded by its slots.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "core/encoding.h"
#include "model/media_encoder.h"

namespace chasqui {

class MediaEncodings {
 public:
  using Deliver = std::function<void(EncodingOutcome)>;

  // `clock` outlives it.
  MediaEncodings(std::shared_ptr<MediaEncoder> encoder, const Clock& clock, Deliver deliver, std::size_t worker);
  // Waits for what is being encoded, and for nothing else.
  ~MediaEncodings();
  MediaEncodings(const MediaEncodings&) = delete;
  MediaEncodings& operator=(const MediaEncodings&) = delete;

  // Worker. Takes all of them.
  void order(std::vector<EncodingOrder>& orders);
  // Worker: the rows stay encoded until the request comes to the next unit, or is forgotten.
  void hold(EncodingOutcome outcome);
  // Worker: … or has read all of the unit.
  void release(RequestId request) { hold({.request = request}); }
  // Worker: see MediaEncoder::forget().
  void forget_tenant(std::uint32_t tenant) { encoder_->forget(tenant); }
  // Worker: a request that has ended, or was never here.
  void forget(RequestId request);

 private:
  using Wanted = std::shared_ptr<std::atomic<bool>>;
  struct Ordered {
    EncodingOrder order;
    Wanted wanted;
  };
  struct Mine {
    Wanted wanted;
    std::shared_ptr<const void> rows;
  };
  void run();
  void encode(const Ordered& ordered);

  const std::shared_ptr<MediaEncoder> encoder_;
  const Clock& clock_;
  const Deliver deliver_;
  Mailbox<Ordered> inbox_;
  std::unordered_map<RequestId, Mine> mine_;  // worker only
  std::vector<Ordered> to_encode_;            // … scratch

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace chasqui
