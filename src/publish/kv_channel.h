// What routers are told of one model: its blocks as batches of events in the format of vLLM, with ascending numbers,
// and the latest batches for those that have missed some. Owned by the KvPublisher; pure; its thread.
//
//   batch         [seconds since 1970, [events], 0]   0: data_parallel_rank
//   events        ["BlockStored", [hashes], hash of the block before them or nil, [tokens], 64, nil (lora_id), medium,
//                  name of the adapter or nil]
//                 ["BlockRemoved", [hashes], medium]
//                 ["AllBlocksCleared"]
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/metric_set.h"
#include "publish/held_blocks.h"

namespace chasqui::publish {

struct KvEventMetrics : MetricSet {
  Counter batches{*this, {"chasqui_kv_event_batches_total", "Messages of --kv-events."}};
  Counter stored{
      *this, {"chasqui_kv_event_blocks_total", "Blocks of 64 tokens in events of --kv-events.", "event=\"stored\""}};
  Counter removed{*this, {"chasqui_kv_event_blocks_total", {}, "event=\"removed\""}};
  Counter told_again{*this,
                     {"chasqui_kv_events_told_again_total",
                      "How often all blocks were cleared and told again, for subscribers that came or were late."}};
  Counter replays{*this, {"chasqui_kv_event_replays_total", "Requests to --kv-events-replay."}};
  Counter dropped{*this, {"chasqui_kv_event_batches_dropped_total", "Messages that ZeroMQ has not taken."}};
  Gauge waiting{*this, {"chasqui_kv_event_changes_waiting", "Changes of workers that are to be published."}};
  Gauge held{*this, {"chasqui_kv_event_blocks_held", "Blocks that routers know of, where they have missed nothing."}};
  Gauge kept_bytes{*this, {"chasqui_kv_event_kept_bytes", "Messages that --kv-events-replay can repeat."}};
};

struct KvBatch {
  std::uint64_t number = 0;
  std::shared_ptr<const std::string> payload;
};

// Of the batches that can be repeated: of those after the last telling of everything, which is kept whole as long as
// they are within the limits. No batches: nothing is repeated, and nothing kept.
struct KeptLimits {
  std::size_t batches = kSizeLimit<"kv_event_batches">;
  std::size_t bytes = kSizeLimit<"kv_event_bytes">;
};

struct KvNews {
  HoldingChanges changes{};
  std::optional<AdapterNames> names{};  // from now on; none: they are as before
};

class KvChannel {
 public:
  // `metrics` outlive it.
  KvChannel(const BlockHasher& hash, KvEventMetrics& metrics, const KeptLimits& limits = {});
  ~KvChannel();
  KvChannel(const KvChannel&) = delete;
  KvChannel& operator=(const KvChannel&) = delete;

  // These move what is to be published to the end of `out`; `now` is in seconds since 1970.
  void apply(KvNews news, double now, std::vector<KvBatch>& out);
  // All is cleared, and what is held told again.
  void tell_all(double now, std::vector<KvBatch>& out);
  // The node ends.
  void clear(double now, std::vector<KvBatch>& out);

  // From where to repeat for a subscriber that has all batches before this one. Where they are not kept any more, all
  // is told again, to others as well, and it gets that. REQUIRES: batches are kept
  std::uint64_t repeats_from(std::uint64_t number, double now, std::vector<KvBatch>& out);
  // Null: it is not kept any more, or there has been none yet. Until the channel is told something.
  const KvBatch* kept(std::uint64_t number) const;
  // The number of the next batch.
  std::uint64_t next() const { return next_; }

 private:
  void publish(const BlockChanges& changes, bool cleared, double now, std::vector<KvBatch>& out);
  void send(std::size_t events, const std::string& written, double now, std::vector<KvBatch>& out);
  void keep(const KvBatch& batch);
  std::uint64_t oldest() const { return next_ - kept_.size(); }
  void show();

  const KeptLimits limits_;
  KvEventMetrics& metrics_;
  HeldBlocks blocks_;
  std::deque<KvBatch> kept_;  // the latest
  std::size_t kept_bytes_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t told_all_ = 0;      // the batch that cleared last
  std::uint64_t told_all_end_ = 0;  // the batch after that telling
  bool telling_ = false;
  std::size_t later_bytes_ = 0;  // of batches after it
  std::size_t shown_blocks_ = 0;
  std::size_t shown_bytes_ = 0;
};

}  // namespace chasqui::publish
