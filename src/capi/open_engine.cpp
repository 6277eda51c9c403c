#include "capi/open_engine.h"

#include <algorithm>
#include <utility>

#include <chasqui_demo_model.h>

#include "api/core/key_ring.h"
#include "api/session/session_body.h"

namespace chasqui {
namespace {

Result<LoadedModel> load(const EngineSettings& settings) {
  if (settings.model.empty()) return load_llama(demo_model(), "chasqui-demo", settings.load);
  return load_llama(settings.model, settings.load);
}

Error not_found(std::uint64_t request) {
  return {ErrorCode::not_found, "there is no request " + std::to_string(request), ""};
}

// Those of one prompt follow each other.
std::size_t choices_of_first(const std::vector<RequestPtr>& requests) {
  const auto other = std::ranges::find_if(
      requests, [&](const RequestPtr& request) { return request->prompt != requests.front()->prompt; });
  return static_cast<std::size_t>(other - requests.begin());
}

}  // namespace

Result<std::unique_ptr<OpenEngine>> OpenEngine::open(EngineSettings settings) {
  auto model = load(settings);
  if (!model) return model.error();
  return open(std::move(*model), std::move(settings));
}

Result<std::unique_ptr<OpenEngine>> OpenEngine::open(LoadedModel model, EngineSettings settings) {
  auto engine = SessionEngine::open(std::move(model), std::move(settings.engine));
  if (!engine) return engine.error();
  return std::unique_ptr<OpenEngine>(new OpenEngine(std::move(*engine), settings.name));
}

Result<std::uint64_t> OpenEngine::begin(PrepareAnswer prepare, const std::string& body) {
  auto answer = prepare(model_.served(), Caller{}, body);
  if (!answer) return answer.error();
  std::vector<RequestPtr> requests = std::move(answer->others);
  requests.insert(requests.begin(), answer->request);
  std::vector<RequestId> ids;
  for (const RequestPtr& request : requests) {
    if (auto submitted = engine_->engine().submit(request); !submitted) {
      for (const RequestId id : ids) engine_->engine().cancel(id);  // their events are of no answer
      return submitted.error();
    }
    ids.push_back(request->id);
  }
  return follow(std::move(ids), choices_of_first(requests), answer->stream, std::move(answer->writer));
}

std::uint64_t OpenEngine::follow(std::vector<RequestId> ids, std::size_t of_one_prompt, bool stream,
                                 std::unique_ptr<AnswerWriter> writer) {
  auto answer = std::make_unique<RunningAnswer>(std::move(ids), of_one_prompt, stream, std::move(writer));
  const std::uint64_t number = newest_ = answer->number();
  for (const RequestId id : answer->ids()) by_id_.emplace(id, answer.get());
  answers_.emplace(number, std::move(answer));
  return number;
}

Result<void> OpenEngine::cancel(std::uint64_t request) {
  const auto found = answers_.find(request);
  if (found == answers_.end()) {
    if (request > 0 && request <= newest_) return {};  // it has ended
    return not_found(request);
  }
  found->second->note_cancel();
  for (const RequestId id : found->second->ids()) engine_->engine().cancel(id);
  return {};
}

Result<SessionId> OpenEngine::create_session(const std::string& body) {
  const TimePoint now = engine_->clock().now();
  SessionTable& sessions = engine_->sessions();
  sessions.expire(now);
  auto made = read_new_session(model_.served(), Caller{}, model_.served().sessions.limits(), body);
  if (!made) return made.error();
  const auto session = sessions.create({}, made->settings, std::move(made->begin), now);
  if (!session) return session.error();
  return (*session)->id;
}

Result<void> OpenEngine::append(const SessionId& id, const std::string& body) {
  SessionTable& sessions = engine_->sessions();
  auto use = sessions.take(0, id, engine_->clock().now());
  if (!use) return use.error();
  auto delta = read_append(model_.served(), tail_of(sessions, use->session()), body);
  if (!delta) return delta.error();
  const auto appended = use->append(std::move(*delta), engine_->clock().now());
  if (!appended) return appended.error();
  return {};
}

Result<std::uint64_t> OpenEngine::generate(const SessionId& id, const std::string& body) {
  const auto session = engine_->find(id);
  if (!session) return session.error();
  const SessionTail tail = tail_of(engine_->sessions(), **session);
  const bool chat = tail.chat != nullptr;
  auto ask = read_session_ask(model_.served(), Caller{}, tail, (*session)->settings.service_class, body);
  if (!ask) return ask.error();
  AnswerHead head = std::move(ask->common.head);
  const auto request = engine_->generate(id, std::move(ask->common.draft));
  if (!request) return request.error();
  return follow({*request}, 1, ask->common.stream,
                chat ? make_chat_writer(std::move(head)) : make_completion_writer(std::move(head)));
}

Result<void> OpenEngine::end_session(const SessionId& id) {
  const auto request = engine_->sessions().end(0, id);
  if (!request) return request.error();
  if (*request) return cancel((*request)->value);
  return {};
}

std::size_t OpenEngine::running() const {
  const auto ends = std::ranges::count_if(told_, [](const auto& event) { return event.kind != CHASQUI_PART; });
  return answers_.size() + static_cast<std::size_t>(ends);
}

const chasqui_event* OpenEngine::next(int timeout_ms) {
  const TimePoint until = engine_->clock().now() + milliseconds(std::max(timeout_ms, 0));
  while (told_.empty()) {
    if (answers_.empty()) {
      quiet();
      return nullptr;
    }
    std::optional<Event> event;
    if (timeout_ms < 0) {
      event = engine_->next();
      if (!event) return nullptr;
    } else {
      const TimePoint now = engine_->clock().now();
      const Duration left = std::max(until - now, Duration::zero());
      event = engine_->next_within(std::chrono::ceil<milliseconds>(left));
      if (!event && left == Duration::zero()) return nullptr;
    }
    if (event) hand_on(std::move(*event));
  }
  given_ = std::move(told_.front());
  told_.pop_front();
  return &given_;
}

// What comes late is of answers that have ended. Left there it keeps the descriptor readable, and who polls that would
// call again and again.
void OpenEngine::quiet() {
  if (engine_->wakeup_fd() < 0) return;
  while (engine_->next_within(milliseconds(0))) {
  }
}

void OpenEngine::hand_on(Event event) {
  const auto found = by_id_.find(event.request);
  if (found == by_id_.end()) return;  // of an answer that has failed, or never began
  RunningAnswer& answer = *found->second;
  if (!answer.take(std::move(event), told_)) return;
  for (const RequestId id : answer.ids()) {
    engine_->engine().cancel(id);  // harmless for those that have ended
    by_id_.erase(id);
  }
  answers_.erase(answer.number());
}

}  // namespace chasqui
