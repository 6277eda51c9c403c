// Removes expired sessions about once a second, so that they do not wait for the next command to give their memory and
// their places back. Of one model.
// Owned by its HostedModel; loop thread only.
#pragma once

#include "engine/session_table.h"
#include "net/event_loop.h"

namespace chasqui {

class SessionSweep {
 public:
  // Both outlive it; it ends after the loop has stopped.
  SessionSweep(net::EventLoop& loop, SessionTable& sessions)
      : loop_(loop), sessions_(sessions), timer_(loop.executor()) {
    sweep();
  }

 private:
  void sweep();

  net::EventLoop& loop_;
  SessionTable& sessions_;
  net::Timer timer_;
};

}  // namespace chasqui
