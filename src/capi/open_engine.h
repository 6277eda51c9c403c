// What stands behind a chasqui_engine: a model with its sessions, and the answers that run. The functions of chasqui.h
// call its members, one each, and turn Results into statuses. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/core/answer.h"
#include "capi/readable_model.h"
#include "capi/running_answer.h"
#include "capi/settings.h"
#include "engine/session_engine.h"

namespace chasqui {

class OpenEngine {
 public:
  static Result<std::unique_ptr<OpenEngine>> open(EngineSettings settings);
  // With a model that is there, for tests.
  static Result<std::unique_ptr<OpenEngine>> open(LoadedModel model, EngineSettings settings);

  // Reads the body as that route does, and submits what it asks for.
  Result<std::uint64_t> begin(PrepareAnswer prepare, const std::string& body);
  Result<void> cancel(std::uint64_t request);

  Result<SessionId> create_session(const std::string& body);
  Result<void> append(const SessionId& id, const std::string& body);
  Result<std::uint64_t> generate(const SessionId& id, const std::string& body);
  Result<SessionId> fork(const SessionId& id) { return engine_->fork(id); }
  Result<void> end_session(const SessionId& id);

  // Answers whose last event was not given out.
  std::size_t running() const;
  int fd() const { return engine_->wakeup_fd(); }
  // Null: nothing came in time, or nothing runs. A negative time: as long as it takes. Valid until the next call.
  const chasqui_event* next(int timeout_ms);

 private:
  OpenEngine(std::unique_ptr<SessionEngine> engine, const std::string& name)
      : engine_(std::move(engine)), model_(*engine_, name) {}

  std::uint64_t follow(std::vector<RequestId> ids, std::size_t of_one_prompt, bool stream,
                       std::unique_ptr<AnswerWriter> writer);
  void hand_on(Event event);
  void quiet();

  const std::unique_ptr<SessionEngine> engine_;
  const ReadableModel model_;
  std::unordered_map<std::uint64_t, std::unique_ptr<RunningAnswer>> answers_;  // by number
  std::unordered_map<RequestId, RunningAnswer*> by_id_;
  std::uint64_t newest_ = 0;        // number of an answer
  std::deque<chasqui_event> told_;  // not given out yet
  chasqui_event given_;             // out last
};

}  // namespace chasqui
