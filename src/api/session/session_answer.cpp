#include "api/session/session_answer.h"

#include <utility>

#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/session/session_persister.h"
#include "api/session/session_sharing.h"
#include "base/log.h"
#include "engine/engine.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// The same of an answer, whose KV may be of use to another node.
net::Awaitable<Result<void>> answer_kept(ServedModel& served, SessionMark before, Tenant tenant, bool was_moved) {
  const SessionId id = before.id;
  const std::size_t tokens = before.tokens;
  if (const auto now = served.sessions.find(tenant.id, id); now && (*now)->stopped) co_return Result<void>();
  Result<void> safe = co_await kept_or_taken_back(served, std::move(before));
  if (!safe || served.sharing == nullptr) co_return safe;
  served.sharing->keep_kv(served, tenant, id);
  const auto session = served.sessions.find(tenant.id, id);
  const bool ended = session && (*session)->tokens.size() != tokens;  // and is not moved again
  if (was_moved && ended) served.sharing->drop_answer(id);
  co_return safe;
}

// What was asked is asked again, as it was where the answer began. conflict: the session is another one by now.
Result<void> go_on_with(const MovedAnswer& moved, const Session& session, OpenAiBody& asked) {
  if (session.tokens.size() != moved.history) {
    return Error{ErrorCode::conflict, "the session has changed since its answer was moved: ask again", ""};
  }
  asked.head.id = moved.completion;
  asked.head.model = moved.model;
  asked.head.fingerprint = moved.fingerprint;
  asked.head.created = moved.created;
  asked.draft.sampling.seed = moved.seed;
  asked.draft.begun = moved.tokens;
  return {};
}

// An answer that can move. When this goes, and neither another node nor this one goes on with what has stopped, that
// stays in the session.
struct MovableAnswer {
  MovableAnswer(SessionAsker by, RequestPtr request, SessionId in, MovedAnswer begin)
      : asker(std::move(by)), asked(std::move(request)), session(std::move(in)), so_far(std::move(begin)) {}
  ~MovableAnswer() { asker.served.sessions.keep_stopped(session, asked->id, asker.served.clock.now()); }
  MovableAnswer(const MovableAnswer&) = delete;
  MovableAnswer& operator=(const MovableAnswer&) = delete;

  const SessionAsker asker;
  const RequestPtr asked;
  const SessionId session;
  const MovedAnswer so_far;
};
using MovableAnswerPtr = std::shared_ptr<const MovableAnswer>;
using ResumedPtr = std::unique_ptr<Resumed>;

// As another node would.
net::Awaitable<Result<ResumedPtr>> go_on_here(MovableAnswerPtr answer, MovedAnswer moved, SessionUse& use,
                                              Permit permit) {
  const SessionAsker& asker = answer->asker;
  ServedModel& served = asker.served;
  net::OffloadTerms terms = reading_terms(asker.caller, asker.body);
  if (use.session().file_bytes() > 0) terms.can_wait = net::OffloadPool::kLong;  // they are decoded
  auto work = [&served, caller = asker.caller, tail = tail_of(served.sessions, use.session()),
               urgency = use.session().settings.service_class,
               body = asker.body] { return read_session_ask(served, caller, tail, urgency, body); };
  Result<SessionAsk> ask = co_await asker.frontend.offload.run(std::move(work), std::move(terms));
  if (!ask) co_return ask.error();
  const std::optional<MovedAnswer> begun = std::move(moved);
  Result<Answer> again = answer_in_session(asker, begun, std::move(*ask), use);
  if (!again) co_return again.error();
  std::vector<RequestPtr> requests{again->request};
  auto started = Generation::start(served.streams, std::move(requests), std::move(permit), Engine::Entry::again);
  if (!started) co_return started.error();
  again->on_submitted();
  co_return std::make_unique<Resumed>(Resumed{std::move(*again), std::move(*started), {}});
}

net::Awaitable<Result<ResumedPtr>> move_answer(MovableAnswerPtr answer, MovedStream stream, Permit permit) {
  ServedModel& served = answer->asker.served;
  Result<SessionUse> use = served.sessions.take_stopped(answer->session, answer->asked->id);
  if (!use) co_return use.error();
  MovedAnswer moved = answer->so_far;
  moved.stream = std::move(stream.name);
  moved.told = std::move(stream.told);
  moved.tokens = std::move(stream.tokens);
  const Result<void> passed = co_await served.sharing->pass_on(served, answer->asked, answer->session, moved);
  if (passed) co_return ResumedPtr();
  served.sharing->note_stays(answer->session, passed.error());
  net::Awaitable<Result<ResumedPtr>> going = go_on_here(answer, std::move(moved), *use, std::move(permit));
  Result<ResumedPtr> gone = co_await std::move(going);
  if (gone) {
    (*gone)->why = stays_here(passed.error());
    co_return gone;
  }
  log_error("an answer that was to move has ended",
            {{"session", answer->session.text}, {"reason", gone.error().message}});
  use->keep_answer(served.clock.now());
  net::Awaitable<Result<void>> keeping = kept(served, answer->session);
  const Result<void> safe = co_await std::move(keeping);
  co_return safe ? gone.error() : safe.error();
}

// Makes `answer` one that can move, if it can.
void let_answer_move(Answer& answer, const SessionAsker& asker, const AnswerHead& head, const Session& session) {
  const Request& request = *answer.request;
  if (asker.served.sharing == nullptr || !answer.stream || request.sampling.chances > 0 || request.tell_prompt) return;
  MovedAnswer so_far{.body = asker.body,
                     .completion = head.id,
                     .model = head.model,
                     .fingerprint = head.fingerprint,
                     .created = head.created,
                     .seed = *request.sampling.seed,
                     .history = session.tokens.size()};
  const auto movable = std::make_shared<const MovableAnswer>(asker, answer.request, session.id, std::move(so_far));
  answer.on_moved = [movable](MovedStream stream, Permit permit) {
    return move_answer(movable, std::move(stream), std::move(permit));
  };
}

}  // namespace

Error stays_here(const Error& why) {
  return {why.code, "the answer goes on here: the shared store does not take what another node would need", ""};
}

net::Awaitable<Result<void>> kept(ServedModel& served, const SessionId& id) {
  if (served.persister == nullptr) co_return Result<void>();
  net::Awaitable<Result<void>> waiting = served.persister->kept(id.text);
  Result<void> done = co_await std::move(waiting);
  co_return done;
}

net::Awaitable<Result<void>> kept_or_taken_back(ServedModel& served, SessionMark before) {
  Result<void> safe = co_await kept(served, before.id);
  if (!safe) served.sessions.take_back(before);
  co_return safe;
}

Result<Answer> answer_in_session(const SessionAsker& asker, const std::optional<MovedAnswer>& moved, SessionAsk ask,
                                 SessionUse& use) {
  ServedModel& served = asker.served;
  if (auto wanted = use.still_wanted(); !wanted) return wanted.error();
  if (moved) {
    if (auto same = go_on_with(*moved, use.session(), ask.common); !same) return same.error();
  }
  RequestDraft& draft = ask.common.draft;
  draft.prompt = use.session().tokens;
  draft.prompt.insert(draft.prompt.end(), ask.before_answer.tokens.begin(), ask.before_answer.tokens.end());
  if (!place_units(ask.units, draft.prompt)) return other_projector();
  if (!ask.units.empty()) draft.media = std::make_shared<const MediaUnits>(std::move(ask.units));
  draft.keep_tokens = true;
  draft.pin = use.session().pin;
  RequestLimits limits = served.limits;
  if (served.sharing != nullptr && draft.slot_label < 0) {
    draft.slot_label = SessionSharing::label_of(use.session());
    limits.slots = draft.slot_label + 1;  // no client can name it
  }
  auto request = make_request(served.engine.next_id(), std::move(draft), limits, served.clock.now());
  if (!request) return request.error();
  const bool chat = ask.before_answer.chat != nullptr;
  const AnswerHead head = ask.common.head;
  Answer answer;
  answer.stream = ask.common.stream;
  answer.writer =
      chat ? make_chat_writer(std::move(ask.common.head)) : make_completion_writer(std::move(ask.common.head));
  answer.on_submitted = [&use, id = (*request)->id, before = std::move(ask.before_answer)]() mutable {
    use.begin(id, std::move(before));
  };
  if (served.persister != nullptr) {
    answer.before_end = [&served, before = mark_of(use.session()), tenant = asker.caller.tenant,
                         was_moved = moved.has_value()] { return answer_kept(served, before, tenant, was_moved); };
  }
  answer.request = std::move(*request);
  if (moved) answer.told = std::make_shared<const StreamEnd>(moved->told);
  let_answer_move(answer, asker, head, use.session());
  return answer;
}

}  // namespace chasqui
