// Who has to know what happens to sessions, so that it outlives the process. Told by the SessionTable, on its thread
// and in the order in which it happens; must not call back.
#pragma once

#include "engine/session.h"

namespace chasqui {

class SessionJournal {
 public:
  virtual ~SessionJournal() = default;
  // It was made, or its history has grown.
  virtual void changed(const Session& session) = 0;
  // It has ended or expired, and nothing more is said of it.
  virtual void removed(const SessionId& id) = 0;
};

}  // namespace chasqui
