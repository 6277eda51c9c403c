#include "api/sessions.h"

#include <charconv>
#include <optional>

#include "api/completions.h"
#include "api/session_body.h"

namespace chasqui {
namespace {

SessionId id_of(const net::HttpExchange& exchange) { return {exchange.param("id")}; }

SessionOwner owner_of(const Service& service, const Caller& caller) {
  const bool anonymous = caller.tenant.id == 0;
  const std::size_t most = anonymous ? service.config.anonymous_sessions : service.config.tenant_sessions;
  return {caller.tenant.id, most, caller.tenant.lasting};
}

// The gate has let it in, but the key may have been taken off the list while the body came. What has expired is gone
// for whoever comes after that, however long ago it was last looked for.
Result<Caller> begin_command(Service& service, const net::HttpExchange& exchange) {
  service.sessions.expire(service.clock.now());
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  if (!caller) return Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  return *caller;
}

Result<SessionUse> take(Service& service, const Result<Caller>& caller, const net::HttpExchange& exchange) {
  if (!caller) return caller.error();
  return service.sessions.take(caller->tenant.id, id_of(exchange), service.clock.now());
}

// For nobody to read.
Error client_gone() { return {ErrorCode::unavailable, "the client has gone", ""}; }

net::Awaitable<void> respond(net::HttpExchange& exchange, Result<std::string> answer) {
  if (answer) {
    co_await respond_json(exchange, std::move(*answer));
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
  if (service.keeper != nullptr) answer.before_end = [&service] { return service.keeper->kept(); };
  answer.request = std::move(*request);
  return answer;
}

// Sessions in one answer to GET /v1/sessions: what the loop writes in well under a millisecond.
constexpr std::size_t kPage = 500;

Result<std::size_t> page_size(const net::HttpRequest& request) {
  const auto text = request.query("limit");
  if (!text) return kPage;
  std::size_t limit = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (failed != std::errc{} || end != text->data() + text->size() || limit < 1 || limit > kPage) {
    return invalid_field("limit", "limit must be a whole number between 1 and " + std::to_string(kPage));
  }
  return limit;
}

net::Awaitable<Result<std::string>> create(Service& service, net::HttpExchange& exchange) {
  const Result<Caller> caller = begin_command(service, exchange);
  if (!caller) co_return caller.error();
  const SessionOwner owner = owner_of(service, *caller);
  if (auto place = service.sessions.check_place(owner); !place) co_return place.error();
  auto work = [&service, caller = *caller, body = exchange.take_body()] {
    return read_new_session(service, caller, body);
  };
  Result<NewSession> made = co_await service.offload.run(std::move(work));
  if (!made) co_return made.error();
  if (exchange.client_gone()) co_return client_gone();  // nobody would ever know its id
  const auto session = service.sessions.create(owner, made->settings, std::move(made->begin), service.clock.now());
  if (!session) co_return session.error();
  const SessionId id = (*session)->id;
  Result<std::string> answer = shown(service, session);
  Result<void> safe = co_await kept(service);
  if (safe) co_return answer;
  (void)service.sessions.end(owner.tenant, id);  // nobody will ever know its id
  co_return safe.error();
}

net::Awaitable<Result<std::string>> append(Service& service, net::HttpExchange& exchange) {
  const Result<Caller> caller = begin_command(service, exchange);
  Result<SessionUse> use = take(service, caller, exchange);
  if (!use) co_return use.error();
  auto work = [&service, tail = tail_of(service.sessions, use->session()), body = exchange.take_body()] {
    return read_append(service, tail, body);
  };
  Result<SessionDelta> delta = co_await service.offload.run(std::move(work));
  if (!delta) co_return delta.error();
  Result<std::string> answer = shown(service, use->append(std::move(*delta), service.clock.now()));
  if (!answer) co_return answer;
  Result<void> safe = co_await kept(service);
  if (!safe) co_return safe.error();
  co_return answer;
}

// Takes the session and a permit, and makes the request; `use` is spent when the engine has it.
net::Awaitable<Result<Answer>> prepare(Service& service, net::HttpExchange& exchange, std::optional<SessionUse>& use,
                                       Permit& permit) {
  const Result<Caller> caller = begin_command(service, exchange);
  Result<SessionUse> taken = take(service, caller, exchange);
  if (!taken) co_return taken.error();
  use.emplace(std::move(*taken));
  Result<Permit> entered = enter(service, exchange.request(), *caller);
  if (!entered) co_return entered.error();
  permit = std::move(*entered);
  auto work = [&service, caller = *caller, tail = tail_of(service.sessions, use->session()),
               urgency = use->session().settings.service_class,
               body = exchange.take_body()] { return read_session_ask(service, caller, tail, urgency, body); };
  Result<SessionAsk> ask = co_await service.offload.run(std::move(work));
  if (!ask) co_return ask.error();
  if (exchange.client_gone()) co_return client_gone();
  co_return answer_of(service, std::move(*ask), *use);
}

}  // namespace

net::Awaitable<void> handle_create_session(Service& service, net::HttpExchange& exchange) {
  Result<std::string> answer = co_await create(service, exchange);
  co_await respond(exchange, std::move(answer));
}

net::Awaitable<void> handle_append(Service& service, net::HttpExchange& exchange) {
  Result<std::string> answer = co_await append(service, exchange);
  co_await respond(exchange, std::move(answer));
}

net::Awaitable<void> handle_session_generate(Service& service, net::HttpExchange& exchange) {
  std::optional<SessionUse> use;
  Permit permit;
  Result<Answer> answer = co_await prepare(service, exchange, use, permit);
  if (answer) {
    Answer ready = std::move(*answer);
    co_await deliver_answer(service, exchange, std::move(ready), std::move(permit));
    co_return;
  }
  use.reset();  // before the client knows, who may try again at once
  Error error = answer.error();
  co_await respond_error(exchange, std::move(error));
}

net::Awaitable<void> handle_session_command(Service& service, net::HttpExchange& exchange, SessionCommand command) {
  const Result<Caller> caller = begin_command(service, exchange);
  Result<std::string> answer = std::string();
  const std::uint64_t changes = service.keeper != nullptr ? service.keeper->changes() : 0;
  if (caller) {
    answer = command(service, *caller, exchange);
  } else {
    answer = caller.error();
  }
  if (answer && service.keeper != nullptr && service.keeper->changes() != changes) {
    Result<void> safe = co_await kept(service);
    if (!safe) answer = safe.error();
  }
  co_await respond(exchange, std::move(answer));
}

Result<std::string> list_sessions(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto limit = page_size(exchange.request());
  if (!limit) return limit.error();
  const Session* after = nullptr;
  if (const auto id = exchange.request().query("after")) {
    const auto found = service.sessions.find(caller.tenant.id, SessionId{*id});
    if (!found) return found.error();
    after = *found;
  }
  auto page = service.sessions.list(caller.tenant.id, *limit + 1, after);
  const bool more = page.size() > *limit;
  if (more) page.pop_back();
  return session_list_body(service, page, more);
}

Result<std::string> show_session(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  return shown(service, service.sessions.find(caller.tenant.id, id_of(exchange)));
}

Result<std::string> cancel_session(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto request = service.sessions.cancel(caller.tenant.id, id_of(exchange), service.clock.now());
  if (!request) return request.error();
  if (*request) service.streams.cancel(**request);
  return show_session(service, caller, exchange);
}

Result<std::string> fork_session(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  return shown(service, service.sessions.fork(owner_of(service, caller), id_of(exchange), service.clock.unix_seconds(),
                                              service.clock.now()));
}

Result<std::string> end_session(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto request = service.sessions.end(caller.tenant.id, id_of(exchange));
  if (!request) return request.error();
  if (*request) service.streams.cancel(**request);
  return session_deleted_body(id_of(exchange));
}

}  // namespace chasqui
