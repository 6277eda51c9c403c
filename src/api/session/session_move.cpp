#include "api/session/session_move.h"

#include <algorithm>
#include <utility>

#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/delivery/kept_streams.h"
#include "api/delivery/stream_offset.h"
#include "api/session/session_answer.h"
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

struct Leaving {
  KeptStreamPtr stream;  // of KeptStreams::ask_move()
  SessionId session;
};

// Those that still run, if the store takes something.
net::Awaitable<void> stop_leaving(KeptStreams& kept, ServedModel& served, std::vector<Leaving> all) {
  // Not a ModelUse: the server may end while this waits, and then its model ends before it.
  ++served.users;
  const Result<void> takes = co_await served.sharing->takes_answers(all.front().session);
  for (const Leaving& each : all) {
    if (each.stream->done) continue;
    if (!takes) {
      served.sharing->note_stays(each.session, takes.error());
      kept.call_off_move(*each.stream, stays_here(takes.error()));
    } else if (served.sessions.let_move(each.session, each.stream->requests.front())) {
      kept.begin_move(*each.stream);
    } else {
      kept.call_off_move(*each.stream,
                         {ErrorCode::conflict, "the answer has ended before it could be moved, or was cancelled", ""});
    }
  }
  --served.users;
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
    KeptStreamPtr leaving = call.frontend.kept != nullptr ? call.frontend.kept->ask_move(request) : nullptr;
    if (leaving == nullptr) {
      co_return Error{ErrorCode::conflict,
                      "the answer in this session is no stream that another node can go on with: it needs stream, "
                      "X-Conversation-Id, and no likelihoods; or it is moved already; wait for its end, or cancel it",
                      ""};
    }
    std::vector<Leaving> one{{leaving, id}};
    net::Awaitable<void> stopping = stop_leaving(*call.frontend.kept, served, std::move(one));
    co_await std::move(stopping);
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

void move_all_answers(net::EventLoop& loop, KeptStreams& kept, ServedModel& served) {
  if (served.sharing == nullptr) return;
  std::vector<Leaving> all;
  for (const auto& [request, id] : served.sessions.generating()) {
    if (KeptStreamPtr stream = kept.ask_move(request)) all.push_back({std::move(stream), id});
  }
  if (!all.empty()) loop.spawn(stop_leaving(kept, served, std::move(all)), "moving answers");
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

}  // namespace chasqui
