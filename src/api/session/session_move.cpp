#include "api/session/session_move.h"

#include <algorithm>
#include <utility>

#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/delivery/kept_streams.h"
#include "api/delivery/stream_offset.h"
#include "api/session/session_persister.h"
#include "base/json_writer.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

std::string moved_body(const SessionId& id, const std::optional<std::string>& stream) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", id.text);
  json.field("object", "session.moved");
  if (stream) json.field("stream", *stream);
  json.end_object();
  return out;
}

}  // namespace

Handled handle_move_session(Call call) {
  ServedModel& served = call.served;
  const SessionId id{call.exchange.param("id")};
  if (served.sharing == nullptr) {
    co_return Error{ErrorCode::not_supported, "sessions move between nodes that share them: start with --shared-store",
                    ""};
  }
  const auto session = served.sessions.find(call.caller.tenant.id, id);
  if (!session) co_return session.error();
  std::optional<std::string> stream;
  if ((*session)->state == Session::State::generating) {
    const RequestId request = (*session)->request;
    if (call.frontend.kept == nullptr || !call.frontend.kept->is_movable(request)) {
      co_return Error{ErrorCode::conflict,
                      "the answer in this session is no stream that another node can go on with: it needs stream, "
                      "X-Conversation-Id, and no likelihoods; wait for its end, or cancel it",
                      ""};
    }
    if (!served.sessions.let_move(id)) {
      co_return Error{ErrorCode::conflict, "the answer in this session was cancelled", ""};
    }
    KeptStreamPtr leaving = call.frontend.kept->begin_move(request);
    Result<std::string> moved = co_await call.frontend.kept->moved(call.frontend, std::move(leaving));
    if (!moved) co_return moved.error();
    stream = std::move(*moved);
  }
  // What was done in it before is acknowledged first.
  net::Awaitable<Result<void>> waiting = served.persister->kept(id.text);
  Result<void> safe = co_await std::move(waiting);
  if (!safe) co_return safe.error();
  served.sharing->let_go(id);
  std::string body = moved_body(id, stream);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

void move_all_answers(KeptStreams& kept, ServedModel& served) {
  if (served.sharing == nullptr) return;
  for (const auto& [request, id] : served.sessions.generating()) {
    if (kept.is_movable(request) && served.sessions.let_move(id)) kept.begin_move(request);
  }
}

net::Awaitable<Result<std::optional<MovedAnswer>>> moved_answer_of(ServedModel& served, const net::HttpRequest& request,
                                                                   const Caller& caller, SessionId id,
                                                                   std::string body) {
  const auto last = request.header("Last-Event-ID");
  if (served.sharing == nullptr || !last) co_return std::optional<MovedAnswer>();
  const auto name = KeptStreams::wish(request);
  if (!name) co_return name.error();
  if (!*name) co_return std::optional<MovedAnswer>();
  Result<void> here = co_await served.sharing->bring(served, caller.tenant, id.text);
  if (!here) co_return here.error();
  Result<std::optional<MovedAnswer>> found = co_await served.sharing->moved_answer(served, caller.tenant, id, **name);
  if (!found) co_return found.error();
  if (!*found || (*found)->body != body) co_return std::optional<MovedAnswer>();
  StreamRing told(std::max<std::size_t>(1, (*found)->told.bytes.size()));
  told.go_on((*found)->told.end, (*found)->told.bytes);
  if (auto from = read_stream_offset(*last, "Last-Event-ID", told); !from) {
    co_return Error{ErrorCode::conflict, "the answer that was moved ends elsewhere: " + from.error().message,
                    "Last-Event-ID"};
  }
  co_return found;
}

void let_answer_move(Answer& answer, ServedModel& served, const AnswerHead& head, std::string body, SessionId id,
                     std::size_t history) {
  const Request& request = *answer.request;
  if (served.sharing == nullptr || !answer.stream || request.sampling.chances > 0 || request.tell_prompt) return;
  MovedAnswer so_far{.body = std::move(body),
                     .completion = head.id,
                     .model = head.model,
                     .fingerprint = head.fingerprint,
                     .created = head.created,
                     .seed = *request.sampling.seed,
                     .history = history};
  answer.on_moved = [&served, id = std::move(id), asked = answer.request,
                     so_far = std::move(so_far)](MovedStream moved) {
    MovedAnswer whole = so_far;
    whole.stream = std::move(moved.name);
    whole.told = std::move(moved.told);
    whole.tokens = std::move(moved.tokens);
    return served.sharing->pass_on(served, asked, id, std::move(whole));
  };
}

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

}  // namespace chasqui
