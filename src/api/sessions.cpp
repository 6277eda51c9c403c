#include "api/sessions.h"

#include <charconv>
#include <optional>

#include "api/completions.h"
#include "api/errors.h"
#include "api/session_body.h"

namespace chasqui {
namespace {

SessionOwner owner_of(const Service& service, const Caller& caller) {
  const bool anonymous = caller.tenant.id == 0;
  const std::size_t most = anonymous ? service.config.anonymous_sessions : service.config.tenant_sessions;
  return {caller.tenant.id, most, caller.tenant.lasting};
}

// What has expired is gone for whoever comes after that, however long ago it was last looked for.
void expire_old(Service& service) { service.sessions.expire(service.clock.now()); }

Result<SessionUse> take(Service& service, const SessionCall& call) {
  expire_old(service);
  return service.sessions.take(call.caller.tenant.id, call.id, service.clock.now());
}

// For nobody to read.
Error client_gone() { return {ErrorCode::unavailable, "the client has gone", ""}; }

net::Awaitable<void> respond(const Service& service, net::HttpExchange& exchange, Result<std::string> answer) {
  if (answer) {
    co_await respond_json(exchange, std::move(*answer));
  } else if (answer.error().code == ErrorCode::unavailable && service.keeper != nullptr &&
             service.keeper->disk_full()) {
    net::HttpResponse full(507, "application/json", error_body(507, answer.error().message));
    co_await exchange.respond(std::move(full));
  } else {
    Error error = answer.error();
    co_await respond_error(exchange, std::move(error));
  }
}

// Before anybody is told of what has just happened.
net::Awaitable<Result<void>> kept(Service& service) {
  if (service.keeper == nullptr) co_return Result<void>();
  net::Awaitable<Result<void>> waiting = service.keeper->kept();
  Result<void> done = co_await std::move(waiting);
  co_return done;
}

// Both in memory and on disk, or neither.
net::Awaitable<Result<void>> kept_or_taken_back(Service& service, SessionMark before) {
  Result<void> safe = co_await kept(service);
  if (!safe) service.sessions.take_back(before);
  co_return safe;
}

Result<std::string> shown(const Service& service, const Result<const Session*>& session) {
  if (!session) return session.error();
  return session_body(service, **session);
}

// The request of a generation: its prompt is the history, and what stands before the answer.
Result<Answer> answer_of(Service& service, SessionAsk ask, SessionUse& use) {
  if (auto wanted = use.still_wanted(); !wanted) return wanted.error();
  RequestDraft& draft = ask.common.draft;
  draft.prompt = use.session().tokens;
  draft.prompt.insert(draft.prompt.end(), ask.before_answer.tokens.begin(), ask.before_answer.tokens.end());
  draft.keep_tokens = true;
  draft.pin = use.session().pin;
  auto request = make_request(service.engine.next_id(), std::move(draft), service.limits, service.clock.now());
  if (!request) return request.error();
  const bool chat = ask.before_answer.chat != nullptr;
  Answer answer;
  answer.stream = ask.common.stream;
  answer.writer =
      chat ? make_chat_writer(std::move(ask.common.head)) : make_completion_writer(std::move(ask.common.head));
  answer.on_submitted = [&use, id = (*request)->id, before = std::move(ask.before_answer)]() mutable {
    use.begin(id, std::move(before));
  };
  if (service.keeper != nullptr) {
    answer.before_end = [&service, before = mark_of(use.session())] { return kept_or_taken_back(service, before); };
  }
  answer.request = std::move(*request);
  return answer;
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

// The gate has let it in, but the key may have been taken off the list while the body came.
Result<SessionCall> read_call(Service& service, net::HttpExchange& exchange, bool names_session) {
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  if (!caller) return Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  SessionCall call;
  call.caller = *caller;
  if (names_session) call.id = {exchange.param("id")};
  call.path = exchange.request().path;
  call.body = exchange.take_body();
  call.limit = exchange.request().query("limit");
  call.after = exchange.request().query("after");
  call.client_gone = [&exchange] { return exchange.client_gone(); };
  return call;
}

}  // namespace

net::Awaitable<Result<std::string>> create_session(Service& service, SessionCall call) {
  expire_old(service);
  const SessionOwner owner = owner_of(service, call.caller);
  if (auto place = service.sessions.check_place(owner); !place) co_return place.error();
  net::OffloadTerms terms = reading_terms(call.caller, call.body.size());
  auto work = [&service, caller = call.caller, body = std::move(call.body)] {
    return read_new_session(service, caller, body);
  };
  Result<NewSession> made = co_await service.offload.run(std::move(work), std::move(terms));
  if (!made) co_return made.error();
  if (call.client_gone()) co_return client_gone();  // nobody would ever know its id
  const auto session = service.sessions.create(owner, made->settings, std::move(made->begin), service.clock.now());
  if (!session) co_return session.error();
  const SessionId id = (*session)->id;
  Result<std::string> answer = shown(service, session);
  Result<void> safe = co_await kept(service);
  if (safe) co_return answer;
  (void)service.sessions.end(owner.tenant, id);  // nobody will ever know its id
  co_return safe.error();
}

net::Awaitable<Result<std::string>> append_to_session(Service& service, SessionCall call) {
  Result<SessionUse> use = take(service, call);
  if (!use) co_return use.error();
  net::OffloadTerms terms = reading_terms(call.caller, call.body.size());
  auto work = [&service, tail = tail_of(service.sessions, use->session()), body = std::move(call.body)] {
    return read_append(service, tail, body);
  };
  Result<SessionDelta> delta = co_await service.offload.run(std::move(work), std::move(terms));
  if (!delta) co_return delta.error();
  SessionMark before = mark_of(use->session());
  Result<std::string> answer = shown(service, use->append(std::move(*delta), service.clock.now()));
  if (!answer) co_return answer;
  Result<void> safe = co_await kept_or_taken_back(service, std::move(before));
  if (!safe) co_return safe.error();
  co_return answer;
}

net::Awaitable<Result<Answer>> prepare_in_session(Service& service, SessionCall call, std::optional<SessionUse>& use,
                                                  Permit& permit) {
  Result<SessionUse> taken = take(service, call);
  if (!taken) co_return taken.error();
  use.emplace(std::move(*taken));
  Result<Permit> entered = enter(service, call.caller, call.path, call.body);
  if (!entered) co_return entered.error();
  permit = std::move(*entered);
  net::OffloadTerms terms = reading_terms(call.caller, call.body.size());
  auto work = [&service, caller = call.caller, tail = tail_of(service.sessions, use->session()),
               urgency = use->session().settings.service_class,
               body = std::move(call.body)] { return read_session_ask(service, caller, tail, urgency, body); };
  Result<SessionAsk> ask = co_await service.offload.run(std::move(work), std::move(terms));
  if (!ask) co_return ask.error();
  if (call.client_gone()) co_return client_gone();
  co_return answer_of(service, std::move(*ask), *use);
}

Result<std::string> list_sessions(Service& service, SessionCall& call) {
  expire_old(service);
  const auto limit = page_size(call.limit);
  if (!limit) return limit.error();
  const Session* after = nullptr;
  if (call.after) {
    const auto found = service.sessions.find(call.caller.tenant.id, SessionId{*call.after});
    if (!found) return found.error();
    after = *found;
  }
  auto page = service.sessions.list(call.caller.tenant.id, *limit + 1, after);
  const bool more = page.size() > *limit;
  if (more) page.pop_back();
  return session_list_body(service, page, more);
}

Result<std::string> show_session(Service& service, SessionCall& call) {
  expire_old(service);
  return shown(service, service.sessions.find(call.caller.tenant.id, call.id));
}

Result<std::string> cancel_session(Service& service, SessionCall& call) {
  expire_old(service);
  const auto request = service.sessions.cancel(call.caller.tenant.id, call.id, service.clock.now());
  if (!request) return request.error();
  if (*request) service.streams.cancel(**request);
  return show_session(service, call);
}

Result<std::string> fork_session(Service& service, SessionCall& call) {
  expire_old(service);
  const auto fork =
      service.sessions.fork(owner_of(service, call.caller), call.id, service.clock.unix_seconds(), service.clock.now());
  if (fork) call.made = (*fork)->id;
  return shown(service, fork);
}

Result<std::string> end_session(Service& service, SessionCall& call) {
  expire_old(service);
  const auto request = service.sessions.end(call.caller.tenant.id, call.id);
  if (!request) return request.error();
  if (*request) service.streams.cancel(**request);
  return session_deleted_body(call.id);
}

net::Awaitable<Result<std::string>> run_session_command(Service& service, SessionCall call, SessionCommand command) {
  const std::uint64_t changes = service.keeper != nullptr ? service.keeper->changes() : 0;
  Result<std::string> answer = command(service, call);
  if (answer && service.keeper != nullptr && service.keeper->changes() != changes) {
    Result<void> safe = co_await kept(service);
    if (!safe && call.made) (void)service.sessions.end(call.caller.tenant.id, *call.made);  // nobody will know its id
    if (!safe) answer = safe.error();
  }
  co_return answer;
}

net::Awaitable<void> handle_create_session(Service& service, net::HttpExchange& exchange) {
  Result<SessionCall> call = read_call(service, exchange, false);
  Result<std::string> answer = std::string();
  if (call) {
    answer = co_await create_session(service, std::move(*call));
  } else {
    answer = call.error();
  }
  co_await respond(service, exchange, std::move(answer));
}

net::Awaitable<void> handle_append(Service& service, net::HttpExchange& exchange) {
  Result<SessionCall> call = read_call(service, exchange, true);
  Result<std::string> answer = std::string();
  if (call) {
    answer = co_await append_to_session(service, std::move(*call));
  } else {
    answer = call.error();
  }
  co_await respond(service, exchange, std::move(answer));
}

net::Awaitable<void> handle_session_generate(Service& service, net::HttpExchange& exchange) {
  std::optional<SessionUse> use;
  Permit permit;
  Result<SessionCall> call = read_call(service, exchange, true);
  Result<Answer> answer = Answer();
  RequestNotePtr note;
  if (call) {
    note = open_note(service, call->caller, exchange.request());
    answer = co_await prepare_in_session(service, std::move(*call), use, permit);
  } else {
    answer = call.error();
  }
  if (answer) {
    Answer ready = std::move(*answer);
    ready.note = note;
    co_await deliver_answer(service, exchange, std::move(ready), std::move(permit));
    co_return;
  }
  use.reset();  // before the client knows, who may try again at once
  Error error = answer.error();
  note_refused(note, error);
  co_await respond_error(exchange, std::move(error));
}

net::Awaitable<void> handle_session_command(Service& service, net::HttpExchange& exchange, SessionCommand command) {
  const bool names_session = command != &list_sessions;
  Result<SessionCall> call = read_call(service, exchange, names_session);
  Result<std::string> answer = std::string();
  if (call) {
    answer = co_await run_session_command(service, std::move(*call), command);
  } else {
    answer = call.error();
  }
  co_await respond(service, exchange, std::move(answer));
}

}  // namespace chasqui
