// Publishes what a node holds in its prefix caches, for routers (docs/fleet.md): an XPUB socket of ZeroMQ with
// the events of each model under its topic, and a ROUTER socket that repeats what a subscriber has missed. Owned by
// serve(); outlives all engines. Workers merge their changes into a mailbox and go on; a thread of its own does the
// rest, and never waits for a subscriber.
//
// A new subscriber is told everything: all is cleared and told again under the topics of the subscription, at most once
// a second for each, to all subscribers. Answers of the ROUTER socket are sent as their readers take them: what waits
// for one is bounded by the queue of the socket, and of the rest only a number is kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mailbox.h"
#include "base/wakeup.h"
#include "cache/holding_log.h"
#include "publish/kv_channel.h"
#include "publish/kv_events_config.h"
#include "publish/zmq_socket.h"

namespace chasqui {

class KvPublisher {
 public:
  // Errors name the flag, or the package that is missing.
  // `owner`: whose holdings are published, see HoldingLog.
  static Result<std::unique_ptr<KvPublisher>> open(const publish::KvEventsConfig& config, HoldingOwner owner);
  // All is cleared.
  ~KvPublisher();
  KvPublisher(const KvPublisher&) = delete;
  KvPublisher& operator=(const KvPublisher&) = delete;

  // Of one worker more, of this model. Any thread; the publisher outlives it.
  std::unique_ptr<HoldingLog> holdings(const std::string& model);

  // Of this model: see publish::HeldBlocks::name(). Any thread.
  void name_adapters(const std::string& model, publish::AdapterNames names);

  const publish::KvEventMetrics& metrics() const { return metrics_; }

 private:
  struct Told {
    std::string topic;
    publish::KvNews news;
    std::int64_t count = 1;  // that became one
  };
  struct Model {
    Model(const std::string& name, const publish::BlockHasher& hash, publish::KvEventMetrics& metrics,
          const publish::KeptLimits& kept)
        : topic(name), channel(hash, metrics, kept) {}

    const std::string topic;
    publish::KvChannel channel;
    bool owed = false;     // everything, to a subscriber
    TimePoint told_all{};  // when it was told last
  };

  // What a client is still to be sent.
  struct Replay {
    std::uint64_t next = 0;
    std::uint64_t end = 0;
  };

  KvPublisher(const publish::KvEventsConfig& config, HoldingOwner owner, const publish::ZmqLibrary& library);
  std::string topic_of(const std::string& model) const;
  void tell(Told told);
  void run();
  void wait();
  void take_subscriptions();
  void tell_owed();
  void take_request();
  bool repeat(const std::string& client, Replay& replay);
  Model& model_of(const std::string& topic);
  void send(const Model& model, std::vector<publish::KvBatch>& batches);
  double wall_time() const;

  const std::string topic_;
  const HoldingOwner owner_;
  const publish::BlockHasher hash_;
  const publish::KeptLimits kept_;
  const RealClock clock_;
  publish::KvEventMetrics metrics_;
  publish::ZmqContext context_;
  std::unique_ptr<publish::ZmqSocket> publisher_;
  std::unique_ptr<publish::ZmqSocket> replay_;  // null: there is none
  Wakeup wakeup_;
  Mailbox<Told> inbox_;  // one item for each topic
  std::atomic<std::uint64_t> logs_{0};
  std::atomic<bool> ends_{false};
  // The thread's.
  std::map<std::string, Model> models_;  // by topic
  std::map<std::string, Replay> replays_;  // by client
  std::vector<publish::KvBatch> batches_;
  bool warned_ = false;

  std::thread thread_;
};

}  // namespace chasqui
