// Answers that stop so that another node can go on with them.
#include <utility>

#include "engine/session_table.h"

namespace chasqui {

void SessionUse::keep_answer(TimePoint now) {
  CHECK(table_ != nullptr && session_->stopped, "no answer has stopped in this session");
  session_->last_used = now;
  if (!session_->ended) table_->take_answer(*session_, *session_->stopped);
  std::exchange(table_, nullptr)->rest(*session_);
}

bool SessionTable::let_move(const SessionId& id, RequestId request) {
  const auto found = generating_.find(request);
  if (found == generating_.end() || found->second->id != id) return false;
  Session& session = *found->second;
  session.moves = !session.cancelled && !session.ended;
  return session.moves;
}

Result<SessionUse> SessionTable::take_stopped(const SessionId& id, RequestId request) {
  const auto found = sessions_.find(id.text);
  if (found == sessions_.end() || found->second->request != request || !found->second->stopped) {
    return Error{ErrorCode::conflict, "the answer was cancelled, or its session has ended", ""};
  }
  return SessionUse(*this, *found->second);
}

void SessionTable::keep_stopped(const SessionId& id, RequestId request, TimePoint now) {
  if (auto use = take_stopped(id, request)) return use->keep_answer(now);
  if (const auto found = generating_.find(request); found != generating_.end()) found->second->moves = false;
}

}  // namespace chasqui
