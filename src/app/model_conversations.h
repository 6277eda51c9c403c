// What clients have said to a model, in sessions and stored responses: all versions of a model that replace each other
// share it, so that sessions go on with the next one, which reads their tokens again. Owned by the HostedModels of
// these versions together; loop thread.
#pragma once

#include <memory>
#include <optional>

#include "api/core/key_ring.h"
#include "api/openai/response_store.h"
#include "api/session/session_persister.h"
#include "api/session/session_sharing.h"
#include "app/session_sweep.h"
#include "base/clock.h"
#include "base/free_later.h"
#include "engine/session_table.h"
#include "net/event_loop.h"

namespace chasqui {

struct ModelConversations {
  ModelConversations(net::EventLoop& loop, const FreeLater& free_later, const SessionLimits& limits,
                     const Tokenizer& tokenizer)
      : sessions(limits, tokenizer), sweep(loop, sessions) {
    responses.set_free_later(free_later);
    sessions.set_free_later(free_later);
  }

  void add_metrics_to(MetricsPage& page) const {
    sessions.metrics().add_to(page);
    if (persister) persister->add_to(page);
    if (sharing) sharing->add_to(page);
  }

  ResponseStore responses;
  SessionTable sessions;
  std::optional<SessionPersister> persister;  // none: they end with the process
  std::optional<SessionSharing> sharing;      // none: they are this node's alone
  SessionSweep sweep;
};

}  // namespace chasqui
