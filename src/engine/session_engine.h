// libchasqui's front door for programs without a server: a model, an engine and its sessions in one object, used by one
// thread. Nothing here computes; next() and answer() wait for the worker. See examples/session.cpp.
//
//   open() ─▶ create() ─▶ append() ─▶ generate() ─▶ next() … until its finished event, or answer() for both
//
// Errors are those of the SessionTable, and what make_request() says of a draft.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/wakeup.h"
#include "engine/engine.h"
#include "engine/session_input.h"
#include "engine/session_table.h"

namespace chasqui {

struct SessionEngineConfig {
  SessionEngineConfig();

  ModelConfig model;    // of each worker; no cells: as many as the model was trained with, at most 4,096 for each slot
  EngineConfig engine;  // keeps 1 GiB of what was computed
  std::size_t workers = 1;   // contexts, of one model; a session stays with its own
  std::string cache_folder;  // what was computed outlives the program in `snapshots` there; empty: it does not
  std::uint64_t cache_folder_bytes = std::uint64_t{16} << 30;
  std::size_t sessions = 1024;
  Duration ttl = seconds(3600);
  const Clock* clock = nullptr;  // outlives the engine; null: the system's
};

class SessionEngine {
 public:
  // Loads nothing, but makes the contexts: errors are the model's, and the folder's, which no other process may use.
  static Result<std::unique_ptr<SessionEngine>> open(LoadedModel model, SessionEngineConfig config = {});
  SessionEngine(const SessionEngine&) = delete;
  SessionEngine& operator=(const SessionEngine&) = delete;

  Result<SessionId> create();
  // Only what is new; all of the history is there already. A session takes text or messages, not both. A message may
  // have ChatMessage::media.
  Result<void> append(const SessionId& id, std::string_view text);
  Result<void> append(const SessionId& id, ChatMessage message);
  // Several at once, for templates that refuse the first of them alone.
  Result<void> append(const SessionId& id, std::vector<ChatMessage> messages);
  // `how` says everything but the prompt, which is the history. Any number of sessions may generate at once.
  Result<RequestId> generate(const SessionId& id, RequestDraft how = {});
  // Waits for what any of them says next; nothing when none generates.
  std::optional<Event> next();
  // … but not longer than that, for programs that have something else to look after.
  std::optional<Event> next_within(milliseconds time);
  // Generates and waits for the end, the finished event; `text` gets each piece as it comes. What other sessions say
  // meanwhile is kept for next().
  Result<Event> answer(const SessionId& id, RequestDraft how, const std::function<void(std::string_view)>& text);
  // What was generated stays. The finished event still comes.
  Result<void> cancel(const SessionId& id);
  Result<SessionId> fork(const SessionId& id);
  Result<void> end(const SessionId& id);
  // The session as it is now; valid until the next call.
  Result<const Session*> find(const SessionId& id) const { return sessions_.find(0, id); }

  const LoadedModel& model() const { return model_; }
  Engine& engine() { return engine_; }
  SessionTable& sessions() { return sessions_; }
  const RequestLimits& limits() const { return limits_; }
  const Clock& clock() const { return clock_; }
  // To wait on for reading, beside others: then next_within() may have something. -1: there is none.
  int wakeup_fd() const { return wakeup_.fd(); }

 private:
  SessionEngine(LoadedModel model, Models contexts, const SessionEngineConfig& config);
  Result<void> append_with(const SessionId& id, const std::function<Result<SessionDelta>(const SessionInput&)>& read);
  SessionInput input_of(const Session& session) const;
  std::optional<Event> take_first();
  void receive_events(int wait_ms = -1);  // waits for events; -1: as long as it takes

  const LoadedModel model_;
  const RealClock real_clock_;
  const Clock& clock_;
  Wakeup wakeup_;
  Engine engine_;
  const RequestLimits limits_;
  SessionTable sessions_;
  std::vector<Event> fresh_;
  std::vector<Event> events_;  // not yet given out, oldest first
};

}  // namespace chasqui
