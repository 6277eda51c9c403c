#include "api/session/sessions.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/body/media_links.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/core/key_ring.h"
#include "api/core/model_table.h"
#include "api/delivery/delivery.h"
#include "api/session/session_answer.h"
#include "api/session/session_body.h"
#include "api/session/session_move.h"
#include "api/session/session_persister.h"
#include "api/session/session_sharing.h"
#include "engine/engine.h"
#include "net/offload.h"

namespace chasqui {
namespace {

SessionOwner owner_of(const ServedModel& served, const Caller& caller) {
  const bool anonymous = caller.tenant.id == 0;
  const std::size_t most = anonymous ? served.config.anonymous_sessions : served.config.tenant_sessions;
  return {caller.tenant.id, most, caller.tenant.lasting};
}

// What has expired is gone for every later request, however long ago it was last looked for.
void expire_old(ServedModel& served) { served.sessions.expire(served.clock.now()); }

Result<SessionUse> take(ServedModel& served, const SessionCall& call) {
  expire_old(served);
  return served.sessions.take(call.caller.tenant.id, call.id, served.clock.now());
}

// No client is left to read it.
Error client_gone() { return {ErrorCode::unavailable, "the client has gone", ""}; }

Handled respond(const ServedModel& served, net::HttpExchange& exchange, Result<std::string> answer) {
  if (answer) {
    co_await respond_json(exchange, std::move(*answer));
    co_return Result<void>();
  }
  Error error = answer.error();
  const bool full = served.persister != nullptr && served.persister->disk_full();
  if (error.code == ErrorCode::unavailable && full) error.code = ErrorCode::storage_full;
  co_return error;
}

// Where nodes share sessions, this one has it when this returns.
net::Awaitable<Result<void>> bring_here(ServedModel& served, const SessionCall& call) {
  if (served.sharing == nullptr || call.id.text.empty()) co_return Result<void>();
  Result<void> here = co_await served.sharing->bring(served, call.caller.tenant, call.id.text);
  co_return here;
}

net::Awaitable<Result<void>> bring_linked_files(Frontend& frontend, ServedModel& served, SessionCall& call) {
  if (!may_link_media(frontend, served)) co_return Result<void>();
  const Result<Permit> permit = enter_aside(frontend, served, call.caller);
  if (!permit) co_return permit.error();
  Result<void> brought = co_await bring_linked_media(frontend, call.caller, call.body, call.client_gone);
  co_return brought;
}

Result<std::string> shown(const ServedModel& served, const Result<const Session*>& session) {
  if (!session) return session.error();
  return session_body(served, **session);
}

// Sessions in one answer to GET /v1/sessions: what the loop writes in well under a millisecond.
constexpr std::size_t kPage = 500;

Result<std::size_t> page_size(const std::optional<std::string>& text) {
  if (!text) return kPage;
  std::size_t limit = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (failed != std::errc{} || end != text->data() + text->size() || limit < 1 || limit > kPage) {
    return invalid_field("limit", "limit must be a whole number between 1 and " + std::to_string(kPage));
  }
  return limit;
}

SessionCall session_call(Call& call, bool names_session) {
  const net::HttpRequest& request = call.exchange.request();
  SessionCall out;
  out.caller = call.caller;
  if (names_session) out.id = {call.exchange.param("id")};
  out.path = request.path;
  out.body = std::move(call.body);
  out.limit = request.query("limit");
  out.after = request.query("after");
  out.client_gone = [&exchange = call.exchange] { return exchange.client_gone(); };
  return out;
}

}  // namespace

ServedModel* model_of_session(const ModelTable& models, std::uint32_t tenant, const SessionId& id) {
  for (ServedModel* const served : models.all()) {
    if (served->sessions.find(tenant, id)) return served;
  }
  return nullptr;
}

net::Awaitable<Result<ServedModel*>> find_shared_session(const ModelTable& models, Tenant tenant, SessionId id) {
  if (ServedModel* const here = model_of_session(models, tenant.id, id)) co_return here;
  const std::vector<ServedModel*> all = models.all();
  for (ServedModel* const served : all) {
    // One that was unloaded while another one was asked is asked no more.
    const std::vector<ServedModel*>& still = models.all();
    if (served->sharing == nullptr || std::ranges::find(still, served) == still.end()) continue;
    const Result<void> here = co_await served->sharing->bring(*served, tenant, id.text);
    if (here) co_return served;
    if (here.error().code != ErrorCode::not_found) co_return here.error();
  }
  co_return static_cast<ServedModel*>(nullptr);
}

net::Awaitable<Result<std::string>> create_session(Frontend& frontend, ServedModel& served, SessionCall call) {
  expire_old(served);
  const SessionOwner owner = owner_of(served, call.caller);
  if (auto place = served.sessions.check_place(owner); !place) co_return place.error();
  Result<void> brought = co_await bring_linked_files(frontend, served, call);
  if (!brought) co_return brought.error();
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  auto work = [&served, caller = call.caller, limits = served.sessions.limits(), body = std::move(call.body)] {
    return read_new_session(served, caller, limits, body);
  };
  Result<NewSession> made = co_await frontend.offload.run(std::move(work), std::move(terms));
  if (!made) co_return made.error();
  if (call.client_gone()) co_return client_gone();          // its id would never be known
  if (served.vocabulary != served.sessions.vocabulary()) {  // its first tokens are of the version before
    co_return Error{ErrorCode::conflict, "the model was replaced by one with another vocabulary just now: try again",
                    ""};
  }
  const auto session = served.sessions.create(owner, made->settings, std::move(made->begin), served.clock.now());
  if (!session) co_return session.error();
  const SessionId id = (*session)->id;
  Result<std::string> answer = shown(served, session);
  Result<void> safe = co_await kept(served, id);
  if (safe) co_return answer;
  (void)served.sessions.end(owner.tenant, id);  // its id will never be known
  co_return safe.error();
}

net::Awaitable<Result<std::string>> append_to_session(Frontend& frontend, ServedModel& served, SessionCall call) {
  Result<void> here = co_await bring_here(served, call);
  if (!here) co_return here.error();
  Result<SessionUse> use = take(served, call);
  if (!use) co_return use.error();
  Result<void> brought = co_await bring_linked_files(frontend, served, call);
  if (!brought) co_return brought.error();
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  auto work = [&served, tail = tail_of(served.sessions, use->session()), body = std::move(call.body)] {
    return read_append(served, tail, body);
  };
  Result<SessionDelta> delta = co_await frontend.offload.run(std::move(work), std::move(terms));
  if (!delta) co_return delta.error();
  SessionMark before = mark_of(use->session());
  Result<std::string> answer = shown(served, use->append(std::move(*delta), served.clock.now()));
  if (!answer) co_return answer;
  Result<void> safe = co_await kept_or_taken_back(served, std::move(before));
  if (!safe) co_return safe.error();
  co_return answer;
}

net::Awaitable<Result<Answer>> prepare_in_session(Frontend& frontend, ServedModel& served, SessionCall call,
                                                  std::optional<SessionUse>& use, Permit& permit) {
  Result<void> here = co_await bring_here(served, call);
  if (!here) co_return here.error();
  if (served.sharing != nullptr) co_await served.sharing->bring_computed(served, call.caller.tenant, call.id.text);
  call.said = call.moved ? call.moved->body : std::move(call.body);
  Result<SessionUse> taken = take(served, call);
  if (!taken) co_return taken.error();
  use.emplace(std::move(*taken));
  Result<Permit> entered = enter(frontend, served, call.caller, call.path, call.said);
  if (!entered) co_return entered.error();
  permit = std::move(*entered);
  net::OffloadTerms terms = reading_terms(call.caller, call.said);
  if (use->session().file_bytes() > 0) terms.can_wait = net::OffloadPool::kLong;  // they are decoded
  auto work = [&served, caller = call.caller, tail = tail_of(served.sessions, use->session()),
               urgency = use->session().settings.service_class,
               body = call.said] { return read_session_ask(served, caller, tail, urgency, body); };
  Result<SessionAsk> ask = co_await frontend.offload.run(std::move(work), std::move(terms));
  if (!ask) co_return ask.error();
  if (call.client_gone()) co_return client_gone();
  const SessionAsker asker{frontend, served, call.caller, call.said};
  co_return answer_in_session(asker, call.moved, std::move(*ask), *use);
}

Result<std::string> list_sessions(ServedModel& served, SessionCall& call) {
  expire_old(served);
  const auto limit = page_size(call.limit);
  if (!limit) return limit.error();
  const Session* after = nullptr;
  if (call.after) {
    const auto found = served.sessions.find(call.caller.tenant.id, SessionId{*call.after});
    if (!found) return found.error();
    after = *found;
  }
  auto page = served.sessions.list(call.caller.tenant.id, *limit + 1, after);
  const bool more = page.size() > *limit;
  if (more) page.pop_back();
  return session_list_body(served, page, more);
}

Result<std::string> show_session(ServedModel& served, SessionCall& call) {
  expire_old(served);
  return shown(served, served.sessions.find(call.caller.tenant.id, call.id));
}

Result<std::string> cancel_session(ServedModel& served, SessionCall& call) {
  expire_old(served);
  const auto request = served.sessions.cancel(call.caller.tenant.id, call.id, served.clock.now());
  if (!request) return request.error();
  if (*request) cancel_request(served, **request);
  return show_session(served, call);
}

Result<std::string> fork_session(ServedModel& served, SessionCall& call) {
  expire_old(served);
  const auto fork =
      served.sessions.fork(owner_of(served, call.caller), call.id, served.clock.unix_seconds(), served.clock.now());
  if (fork) call.made = (*fork)->id;
  return shown(served, fork);
}

Result<std::string> end_session(ServedModel& served, SessionCall& call) {
  expire_old(served);
  const auto request = served.sessions.end(call.caller.tenant.id, call.id);
  if (!request) return request.error();
  if (*request) cancel_request(served, **request);
  return session_deleted_body(call.id);
}

net::Awaitable<Result<std::string>> run_session_command(ServedModel& served, SessionCall call, SessionCommand command) {
  Result<void> here = co_await bring_here(served, call);
  if (!here) co_return here.error();
  const std::uint64_t changes = served.persister != nullptr ? served.persister->changes() : 0;
  Result<std::string> answer = command(served, call);
  if (answer && served.persister != nullptr && served.persister->changes() != changes) {
    Result<void> safe = co_await kept(served, call.made.value_or(call.id));
    if (!safe && call.made) (void)served.sessions.end(call.caller.tenant.id, *call.made);  // its id will not be known
    if (!safe) answer = safe.error();
  }
  co_return answer;
}

Handled handle_create_session(Call call) {
  SessionCall asked = session_call(call, false);
  Result<std::string> answer = co_await create_session(call.frontend, call.served, std::move(asked));
  Result<void> done = co_await respond(call.served, call.exchange, std::move(answer));
  co_return done;
}

Handled handle_append(Call call) {
  SessionCall asked = session_call(call, true);
  Result<std::string> answer = co_await append_to_session(call.frontend, call.served, std::move(asked));
  Result<void> done = co_await respond(call.served, call.exchange, std::move(answer));
  co_return done;
}

// The session is free again before the client knows of an error, who may try again at once: it is told afterwards.
Handled handle_session_generate(Call call) {
  // While it runs its session is in use, which would refuse the request that goes on with its stream.
  if (KeptStreamPtr stream = stream_gone_on_with(call)) {
    Result<void> resumed = co_await resume_stream(call.frontend, call.exchange, std::move(stream));
    co_return resumed;
  }
  std::optional<SessionUse> use;
  Permit permit;
  const RequestNotePtr note = open_note(call);
  SessionCall asked = session_call(call, true);
  Result<std::optional<MovedAnswer>> moved =
      co_await moved_answer_of(call.served, call.exchange.request(), call.caller, asked.id, asked.body);
  if (!moved) {
    note_refused(note, moved.error());
    co_return moved.error();
  }
  asked.moved = std::move(*moved);
  Result<Answer> answer = co_await prepare_in_session(call.frontend, call.served, std::move(asked), use, permit);
  if (!answer) {
    note_refused(note, answer.error());
    co_return answer.error();
  }
  Answer ready = std::move(*answer);
  ready.note = note;
  Result<void> delivered = co_await deliver_answer(std::move(call), std::move(ready), std::move(permit));
  co_return delivered;
}

Handled handle_session_command(Call call, SessionCommand command) {
  SessionCall asked = session_call(call, command != &list_sessions);
  Result<std::string> answer = co_await run_session_command(call.served, std::move(asked), command);
  Result<void> done = co_await respond(call.served, call.exchange, std::move(answer));
  co_return done;
}

}  // namespace chasqui
