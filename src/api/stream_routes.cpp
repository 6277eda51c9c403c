#include "api/stream_routes.h"

#include "api/errors.h"
#include "api/fields.h"
#include "api/stream_offset.h"
#include "base/json_writer.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kLookupMax = kSizeLimit<"resume_lookup">;

// Where to go on.
Result<std::uint64_t> first_byte(const net::HttpRequest& request, const KeptStream& stream) {
  if (const auto from = request.query("from")) return read_stream_offset(*from, "from", stream.ring);
  const auto last = request.header("Last-Event-ID");
  return read_stream_offset(last.value_or("0"), "Last-Event-ID", stream.ring);
}

Result<KeptStreamPtr> stream_of(Service& service, const net::HttpRequest& request) {
  const std::optional<Caller> caller = service.keys.find(request);
  if (!caller) return Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  const auto id = request.query("conv_id");
  if (!id || id->empty()) return invalid_field("conv_id", "conv_id must be the name of a stream");
  KeptStreamPtr stream = service.kept != nullptr ? service.kept->find(caller->tenant.id, *id) : nullptr;
  if (stream != nullptr) return stream;
  return Error{ErrorCode::not_found, "there is no stream of this name; it may have expired", "conv_id"};
}

net::Awaitable<void> go_on(Service& service, net::HttpExchange& exchange, KeptStreamPtr stream) {
  const Result<std::uint64_t> from = first_byte(exchange.request(), *stream);
  if (!from) {
    Error error = from.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  service.kept->metrics().resumed.add();
  co_await service.kept->follow(service, exchange, std::move(stream), *from);
}

// Offload pool.
Result<std::vector<std::string>> read_lookup(const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  std::vector<std::string> out;
  const auto* ids = fields.array("conversation_ids");
  bool strings = ids != nullptr && ids->size() <= kLookupMax;
  for (std::size_t i = 0; strings && i < ids->size(); ++i) {
    strings = (*ids)[i].is_string();
    if (strings) out.emplace_back((*ids)[i].get_string().data(), (*ids)[i].get_string().size());
  }
  if (!strings) fields.refuse("conversation_ids", "an array of at most " + std::to_string(kLookupMax) + " strings");
  if (!fields.ok()) return fields.error();
  return out;
}

std::string lookup_body(const Service& service, std::uint32_t tenant, const std::vector<std::string>& ids) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const std::string& id : ids) {
    const KeptStreamPtr stream = service.kept != nullptr ? service.kept->find(tenant, id) : nullptr;
    if (stream == nullptr) continue;
    json.begin_object();
    json.field("conversation_id", stream->id);
    json.field("is_done", stream->done);
    json.field("total_bytes", stream->ring.end());
    json.field("started_at", stream->started_at);
    json.end_object();
  }
  json.end_array();
  return out;
}

}  // namespace

net::Awaitable<void> deliver_kept(Service& service, net::HttpExchange& exchange, std::string id, Answer answer,
                                  Permit permit) {
  const std::uint32_t tenant = answer.request->tenant.id;
  KeptStreamPtr stream = service.kept->find(tenant, id);
  // A client that sends its request again, as those of fetch do, does not want a second answer.
  if (stream != nullptr && exchange.request().header("Last-Event-ID")) {
    permit.release();
    co_await go_on(service, exchange, std::move(stream));
    co_return;
  }
  std::optional<Error> failed;
  if (const auto room = service.kept->room_for(tenant, id); !room) failed = room.error();
  if (!failed) {
    auto started = submit(service, answer, std::move(permit));
    if (started) {
      if (answer.on_submitted) answer.on_submitted();
      auto kept = service.kept->start(service, std::move(id), std::move(*started), std::move(answer));
      if (kept) {
        stream = std::move(*kept);
      } else {
        failed = kept.error();
      }
    } else {
      failed = started.error();
    }
  }
  if (failed) {
    co_await respond_error(exchange, std::move(*failed));
    co_return;
  }
  co_await service.kept->follow(service, exchange, std::move(stream), 0);
}

net::Awaitable<void> handle_stream(Service& service, net::HttpExchange& exchange) {
  Result<KeptStreamPtr> stream = stream_of(service, exchange.request());
  if (!stream) {
    Error error = stream.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  KeptStreamPtr found = std::move(*stream);
  co_await go_on(service, exchange, std::move(found));
}

net::Awaitable<void> handle_stop_stream(Service& service, net::HttpExchange& exchange) {
  const Result<KeptStreamPtr> stream = stream_of(service, exchange.request());
  if (!stream) {
    Error error = stream.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  service.kept->stop(service, *stream);
  net::HttpResponse response(204);
  co_await exchange.respond(std::move(response));
}

net::Awaitable<void> handle_stream_lookup(Service& service, net::HttpExchange& exchange) {
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  std::optional<Error> failed;
  if (!caller) failed = Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  if (!failed) {
    auto work = [body = exchange.take_body()] { return read_lookup(body); };
    net::OffloadTerms terms;
    terms.owner = caller->tenant.id;
    Result<std::vector<std::string>> ids = co_await service.offload.run(std::move(work), std::move(terms));
    if (ids) {
      std::string body = lookup_body(service, caller->tenant.id, *ids);
      co_await respond_json(exchange, std::move(body));
      co_return;
    }
    failed = ids.error();
  }
  co_await respond_error(exchange, std::move(*failed));
}

}  // namespace chasqui
