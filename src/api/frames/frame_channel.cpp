#include "api/frames/frame_channel.h"

#include <functional>
#include <memory>
#include <utility>

#include "api/admin/admin.h"
#include "api/body/media_links.h"
#include "api/body/model_choice.h"
#include "api/core/answer_sinks.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/core/request_log.h"
#include "api/core/served_model.h"
#include "api/openai/completions.h"
#include "base/utf8.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Read on the loop in some ten microseconds; what is longer goes to the pool.
constexpr std::size_t kReadAtOnce = 8 * 1024;
constexpr Duration kPoolFullPause = milliseconds(10);

// One of the two; neither for other events.
struct SessionEvent {
  using Slow = net::Awaitable<Result<std::string>> (*)(Frontend&, ServedModel&, SessionCall);

  SessionCommand command = nullptr;
  Slow slow = nullptr;  // reads input in the pool

  bool known() const { return command != nullptr || slow != nullptr; }
};

SessionEvent find_session_command(std::string_view event) {
  if (event == "session.create") return {nullptr, &create_session};
  if (event == "session.append") return {nullptr, &append_to_session};
  if (event == "session.list") return {&list_sessions};
  if (event == "session.show") return {&show_session};
  if (event == "session.cancel") return {&cancel_session};
  if (event == "session.fork") return {&fork_session};
  if (event == "session.end") return {&end_session};
  return {};
}

}  // namespace

// A request or command that has not been answered to its end. In the coroutine that answers it.
struct FrameChannel::Open {
  Open(FrameChannel& owner, std::string under) : conversation(owner), id(std::move(under)) {
    conversation.open_.emplace(id, this);
  }
  ~Open() { conversation.open_.erase(id); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  FrameChannel& conversation;
  const std::string id;
  Generation* generation = nullptr;  // none yet, or none any more
  StreamHub* hub = nullptr;          // that it runs in
  RequestId request;
  bool cancelled = false;
};

// Frames of one request, appended to what leaves the connection at the end of the turn.
class FrameChannel::Sink final : public AnswerSink {
 public:
  Sink(FrameChannel& conversation, const FrameHead& head, AnswerWriter& writer, std::string& text)
      : conversation_(conversation), head_(head), writer_(writer), text_(text) {}

  bool flush(std::string&, TimePoint) override {
    if (head_.stream) conversation_.connection_.send();
    return true;
  }

 private:
  bool say(Event& event, std::string&) override {
    conversation_.say_event(head_, writer_, event, text_);
    return true;
  }

  FrameChannel& conversation_;
  const FrameHead& head_;
  AnswerWriter& writer_;
  std::string& text_;
};

net::Awaitable<void> FrameChannel::frame(std::string body) {
  FrameHead head;
  if (body.size() <= kReadAtOnce) {
    head = read_frame_head(body);
  } else {
    // The next frame may be this one's cancel, so it waits.
    const Busy busy(connection_);
    head = co_await read_head_in_pool(body);
  }
  if (!connection_.ending()) dispatch(std::move(head), std::move(body));
}

net::Awaitable<FrameHead> FrameChannel::read_head_in_pool(std::string& body) {
  const auto owned = std::make_shared<std::string>(std::move(body));
  for (;;) {
    auto work = [owned] { return read_frame_head(*owned); };
    net::OffloadTerms terms = reading_terms(caller_, *owned);
    terms.gone = [this] { return connection_.gone(); };
    Result<FrameHead> head = co_await node_.frontend.offload.run(std::move(work), std::move(terms));
    if (head) {
      body = std::move(*owned);
      co_return std::move(*head);
    }
    if (head.error().code != ErrorCode::overloaded || connection_.gone()) {
      FrameHead failed;
      failed.id = "null";
      failed.error = head.error();
      co_return failed;
    }
    // Without the id the client could not be told: this connection waits until there is room.
    net::Timer pause(connection_.loop().executor(), kPoolFullPause);
    co_await pause.async_wait(net::kAwait);
  }
}

void FrameChannel::dispatch(FrameHead head, std::string body) {
  if (head.error) return say_error(head.id, *head.error);
  if (head.event == "cancel") return cancel(head.id);
  const bool generates = head.event.empty() || head.event == "generate" || head.event == "session.generate";
  const bool commands = find_session_command(head.event).known();
  if (!generates && !commands) return say_result(head.id, answer_at_once(head));

  if (open_.contains(head.id)) {
    return say_error(head.id, {ErrorCode::conflict, "a request with this id has not been answered yet", "id"});
  }
  if (open_.size() >= kOpenMax) {
    return say_error(head.id, {ErrorCode::quota_exceeded,
                               "a connection has at most " + std::to_string(kOpenMax) + " requests at once", ""});
  }
  std::optional<Held> held = connection_.hold(body.size());
  if (!held) {
    return say_error(head.id, {ErrorCode::overloaded, "frames that wait take all the memory that they may", ""});
  }
  net::EventLoop& loop = connection_.loop();
  Busy busy(connection_);
  if (generates) {
    auto writer = make_frame_writer(head);
    loop.spawn(generate(std::move(busy), std::move(*held), std::move(head), std::move(body), std::move(writer)),
               "frame request");
  } else {
    loop.spawn(run_command(std::move(busy), std::move(*held), std::move(head), std::move(body)), "frame command");
  }
}

// One that is not open has ended meanwhile: the two messages have crossed.
void FrameChannel::cancel(const std::string& id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  found->second->cancelled = true;
  if (found->second->generation != nullptr) found->second->hub->cancel(found->second->request);
}

Result<std::string> FrameChannel::answer_at_once(const FrameHead& head) {
  if (head.event == "health") return health_answer(node_);
  if (head.event == "metrics") return node_.metrics.render_json();
  if (head.event == "props") {
    const Result<const ModelEntry*> entry = node_.models.find(head.model);
    if (!entry) return entry.error();
    if ((*entry)->served == nullptr) {
      return Error{ErrorCode::unavailable, "the model " + (*entry)->name + " was not loaded yet", "model"};
    }
    return props_answer(node_, *(*entry)->served, caller_);
  }
  return invalid_field("event",
                       "event must be left out or one of generate, cancel, health, metrics, props, session.create, "
                       "session.append, session.generate, session.cancel, session.fork, session.show, session.list, "
                       "session.end");
}

SessionCall FrameChannel::call_of(const FrameHead& head, std::string body) {
  SessionCall call;
  call.caller = caller_;
  call.id = SessionId{head.session};
  call.path = head.event;
  call.body = std::move(body);
  if (head.has_limit) call.limit = head.limit;
  if (head.has_after) call.after = head.after;
  call.client_gone = [this] { return connection_.gone(); };
  return call;
}

net::Awaitable<void> FrameChannel::generate([[maybe_unused]] Busy busy, Held held, FrameHead head, std::string body,
                                            std::unique_ptr<AnswerWriter> writer) {
  Open open(*this, head.id);
  RequestNotePtr note;
  if (node_.frontend.requests != nullptr) {
    note = node_.frontend.requests->open(head.event.empty() ? "generate" : head.event, caller_, head.traceparent,
                                         head.tracestate, body);
    note->from(connection_.peer().address);
  }
  std::optional<SessionUse> use;
  Permit permit;
  const Result<ServedModel*> served = co_await model_of(head, body, true);
  std::optional<ModelUse> model_use;
  if (served) model_use.emplace(**served);
  if (served && note) note->chosen((*served)->config.name);
  Result<Answer> answer = Answer();
  if (served) {
    answer = co_await prepare(**served, head, std::move(body), use, permit);
  } else {
    answer = served.error();
  }
  held.release();
  if (connection_.gone()) co_return;
  if (!answer || open.cancelled) {
    use.reset();  // before the client knows, who may try again at once
    if (!answer) {
      note_refused(note, answer.error());
      say_error(head.id, answer.error());
    } else {
      append_cancelled_frame(connection_.outgoing(), head);
      connection_.send();
    }
    co_return;
  }
  Answer ready = std::move(*answer);
  ready.writer = std::move(writer);
  ready.note = std::move(note);
  co_await deliver(open, **served, head, std::move(ready), std::move(permit));
}

// A session's, whatever the frame names.
// What computes nothing waits for no model that is there, as its cancel would for the very answer that it is to end.
net::Awaitable<Result<ServedModel*>> FrameChannel::model_of(const FrameHead& head, std::string& body, bool computes) {
  ModelTable& models = node_.models;
  if (models.has_choice() && !head.session.empty()) {
    SessionId id{head.session};
    const Result<ServedModel*> found = co_await find_shared_session(models, caller_.tenant, std::move(id));
    if (!found || (*found != nullptr && !computes)) co_return found;
    if (*found != nullptr) {
      ModelWait wait{[this] { return connection_.gone(); }};
      Result<ServedModel*> served = co_await models.ready(models.entry_of(**found), std::move(wait));
      co_return served;
    }
  }
  const ModelEntry& otherwise = models.entry_of(models.first());
  std::function<bool()> gone = [this] { return connection_.gone(); };
  const Result<ModelChoice> choice =
      co_await choose_model(models, node_.frontend, caller_, body, otherwise, std::move(gone));
  if (!choice) co_return choice.error();
  if (choice->entry->served != nullptr && !computes) co_return choice->entry->served;
  ModelWait wait{[this] { return connection_.gone(); }};
  Result<ServedModel*> served = co_await models.ready(*choice->entry, std::move(wait));
  co_return served;
}

net::Awaitable<Result<Answer>> FrameChannel::prepare(ServedModel& served, const FrameHead& head, std::string body,
                                                     std::optional<SessionUse>& use, Permit& permit) {
  if (head.event == "session.generate") {
    SessionCall call = call_of(head, std::move(body));
    Result<Answer> in_session = co_await prepare_in_session(node_.frontend, served, std::move(call), use, permit);
    co_return in_session;
  }
  // A request that comes again under its old id keeps the place that it was promised.
  Result<Permit> entered = enter(node_.frontend, served, caller_, "generate", body);
  if (!entered) co_return entered.error();
  permit = std::move(*entered);
  if (head.chat && may_link_media(node_.frontend, served)) {
    const std::function<bool()> gone = [this] { return connection_.gone(); };
    Result<void> brought = co_await bring_linked_media(node_.frontend, caller_, body, gone);
    if (!brought) co_return brought.error();
  }
  net::OffloadTerms terms = reading_terms(caller_, body);
  terms.gone = [this] { return connection_.gone(); };
  auto work = [&served, caller = caller_, read = head.chat ? &prepare_chat : &prepare_completion,
               body = std::move(body)] { return read(served, caller, body); };
  Result<Answer> answer = co_await node_.frontend.offload.run(std::move(work), std::move(terms));
  co_return answer;
}

net::Awaitable<void> FrameChannel::deliver(Open& open, ServedModel& served, const FrameHead& head, Answer answer,
                                           Permit permit) {
  auto started = submit(served, answer, std::move(permit));
  if (!started) {
    say_error(head.id, started.error());
    co_return;
  }
  if (answer.on_submitted) answer.on_submitted();
  Generation& generation = **started;
  open.request = answer.request->id;
  open.generation = &generation;
  open.hub = &served.streams;
  std::vector<Event> events;
  std::string text;
  Sink sink(*this, head, *answer.writer, text);
  const std::function<bool()> gone = [this] { return connection_.gone(); };
  bool finished = false;
  while (!finished) {
    const Drained drained = co_await drain_events(generation, answer, kNever, &sink, gone, events);
    if (drained == Drained::ended) break;
    for (const Event& event : events) finished = say_event(head, *answer.writer, event, text);
    connection_.send();
  }
  open.generation = nullptr;
}

bool FrameChannel::say_event(const FrameHead& head, AnswerWriter& writer, const Event& event, std::string& text) {
  std::string& out = connection_.outgoing();
  if (event.kind == Event::Kind::queued) {
    if (!for_people()) append_queued_frame(out, head.id, event);
    return false;
  }
  if (event.kind == Event::Kind::progress || event.kind == Event::Kind::prompt) return false;
  if (event.kind == Event::Kind::text && head.stream) {
    writer.text(event, out);
    return false;
  }
  text += event.text;
  if (event.kind == Event::Kind::text) return false;
  if (const auto failure = failure_of(event)) {
    say_error(head.id, *failure);
  } else if (head.stream) {
    writer.end(event, out);
  } else {
    out += writer.whole({Collected{std::move(text), {}, {}, {}, event}});
  }
  return true;
}

net::Awaitable<void> FrameChannel::run_command([[maybe_unused]] Busy busy, [[maybe_unused]] Held held, FrameHead head,
                                               std::string body) {
  const Open open(*this, head.id);
  const SessionEvent event = find_session_command(head.event);
  SessionCall call = call_of(head, std::move(body));
  const Result<ServedModel*> served = co_await model_of(head, call.body, false);
  std::optional<ModelUse> model_use;
  if (served) model_use.emplace(**served);
  Result<std::string> result = std::string();
  if (!served) {
    result = served.error();
  } else if (event.slow != nullptr) {
    result = co_await event.slow(node_.frontend, **served, std::move(call));
  } else {
    result = co_await run_session_command(**served, std::move(call), event.command);
  }
  say_result(head.id, result);
}

net::Awaitable<void> FrameChannel::line(std::string text) {
  if (text == "/health" || text == "/metrics") {
    FrameHead head;
    head.event = text.substr(1);
    const Result<std::string> answer = answer_at_once(head);
    if (answer) {
      connection_.outgoing() += *answer + '\n';
      connection_.send();
    } else {
      say_error({}, answer.error());
    }
    connection_.finish();
    co_return;
  }
  if (text.empty()) co_return;
  if (!is_valid_utf8(text) || text.find('\0') != std::string::npos) {
    say_error({}, {ErrorCode::invalid_request, "a line must be UTF-8 without NUL", ""});
    co_return;
  }
  FrameHead head;
  head.id = "line";
  // A question, where the model knows how to take one.
  head.chat = !node_.models.first().model.chat_template->source().empty();
  std::string body = body_of_line(text, head.chat);
  auto writer = make_line_writer();
  std::optional<Held> held = connection_.hold(body.size());
  if (!held) co_return say_error({}, {ErrorCode::overloaded, "too many others wait", ""});
  Busy busy(connection_);
  co_await generate(std::move(busy), std::move(*held), std::move(head), std::move(body), std::move(writer));
}

void FrameChannel::gone() {
  for (const auto& [id, open] : open_) {
    if (open->generation != nullptr) open->generation->interrupt();
  }
}

void FrameChannel::say_result(const std::string& id, const Result<std::string>& result) {
  if (!result) return say_error(id, result.error());
  append_result_frame(connection_.outgoing(), id, *result);
  connection_.send();
}

void FrameChannel::say_error(std::string_view id, const Error& error) {
  if (for_people()) {
    connection_.outgoing() += "error: " + error.message + '\n';
  } else {
    append_error_frame(connection_.outgoing(), id, error);
  }
  connection_.send();
}

}  // namespace chasqui
