// Looks whether the workers move. Where one stands still for too long while it has work, its requests get an error
// event, as do those that come to it later, until it moves again; /health says the same from the same clock. Of one
// model. Owned by its HostedModel; loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core/generation.h"
#include "engine/engine.h"
#include "net/event_loop.h"

namespace chasqui {

class WorkerWatch {
 public:
  // All outlive it. It may end while the loop runs. `model` is for the log.
  WorkerWatch(net::EventLoop& loop, Engine& engine, StreamHub& streams, const std::string& model);

  // Called once, the first time that one hangs.
  void on_hang(std::function<void()> callback) { on_hang_ = std::move(callback); }
  // One did so when it was last looked at.
  bool hangs() const;
  // What they compute with is gone for good: their requests get this error, now and from now on.
  void lose(const Error& why);

 private:
  struct Seen {
    int looks = 0;  // in a row that found it standing
    bool hangs = false;
  };

  void look();
  void judge(std::size_t worker, bool stands);

  net::EventLoop& loop_;
  Engine& engine_;
  StreamHub& streams_;
  const std::string& model_;
  const Duration every_;
  net::Timer timer_;
  TimePoint last_look_{};
  std::vector<Seen> workers_;
  std::function<void()> on_hang_;
  std::optional<Error> lost_;
  // A timer that has expired calls back although it is gone.
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace chasqui
