// The thread that encodes the pictures and sounds of one worker's prompts, so that its steps do not wait for that.
// Takes orders through a mailbox, in the order in which sequences came to a unit (one at a time of each), and hands
// what came of them to `deliver`, which runs on its thread and must not block. Workers of a model share the encoder,
// where their threads wait for each other, and the folder in which encodings are kept: they are written there while
// there is nothing to encode, and those that are too many are not. Without an encoder it erases files, and no more.
// Owned by the Worker; bounded by its slots.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mailbox.h"
#include "core/encoding.h"
#include "engine/encoding_folder.h"
#include "model/media_encoder.h"

namespace chasqui {

class MediaEncodings {
 public:
  using Deliver = std::function<void(EncodingOutcome)>;
  using Erased = std::function<void(std::size_t files, bool all)>;
  struct Keeping {
    std::shared_ptr<EncodingFolder> folder;  // null: in memory alone
    bool shared_by_tenants = false;
  };

  // `clock` outlives it. REQUIRES: there is an encoder, or a folder
  MediaEncodings(std::shared_ptr<MediaEncoder> encoder, Keeping keeping, const Clock& clock, Deliver deliver,
                 std::size_t worker);
  // Waits for what is being encoded, and for files that are to be written or removed.
  ~MediaEncodings();
  MediaEncodings(const MediaEncodings&) = delete;
  MediaEncodings& operator=(const MediaEncodings&) = delete;

  // Worker. Takes all of them.
  void order(std::vector<EncodingOrder>& orders);
  // Worker: the rows stay encoded until the request comes to the next unit, or is forgotten.
  void hold(EncodingOutcome outcome);
  // Worker: … or has read all of the unit.
  void release(RequestId request) { hold({.request = request}); }
  // Worker: see MediaEncoder::forget(). `erased` runs on its thread, when what it is encoding is done and no file is
  // left either. Orders that wait are not waited for.
  void forget_tenant(const Tenant& tenant, Erased erased);
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
  struct Erasure {
    Tenant tenant;
    Erased erased;
  };
  struct Unwritten {
    std::uint64_t tenant = 0;  // see lasting_tenant()
    MediaUnit unit;
    EncodedMediaPtr rows;
  };
  using Job = std::variant<Ordered, Erasure>;
  void run();
  void take(std::vector<Job>& jobs);
  void encode(const Ordered& ordered);
  void erase(const Erasure& erasure);
  bool read_file(const MediaUnit& unit, const Tenant& tenant);
  void keep_for_writing(const Ordered& ordered, EncodedMediaPtr rows);
  void write_one();

  const std::shared_ptr<MediaEncoder> encoder_;
  const Keeping keeping_;
  const Clock& clock_;
  const Deliver deliver_;
  Mailbox<Job> inbox_;
  std::unordered_map<RequestId, Mine> mine_;  // worker only
  std::vector<Job> to_do_;                    // … scratch
  std::deque<Ordered> orders_;                // its own thread only
  std::deque<Unwritten> unwritten_;           // … the oldest first
  std::size_t unwritten_bytes_ = 0;           // … of their rows

  std::thread thread_;  // last: everything above exists before it starts
};

}  // namespace chasqui
