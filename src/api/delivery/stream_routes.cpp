#include "api/delivery/stream_routes.h"

#include "api/body/fields.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/delivery/delivery.h"
#include "api/delivery/kept_streams.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "net/offload.h"

namespace chasqui {
namespace {

constexpr std::size_t kLookupMax = kSizeLimit<"resume_lookup">;

Result<KeptStreamPtr> stream_of(const Call& call) {
  const auto id = call.exchange.request().query("conv_id");
  if (!id || id->empty()) return invalid_field("conv_id", "conv_id must be the name of a stream");
  const KeptStreams* const kept = call.frontend.kept;
  KeptStreamPtr stream = kept != nullptr ? kept->find(call.caller.tenant.id, *id) : nullptr;
  if (stream != nullptr) return stream;
  return Error{ErrorCode::not_found, "there is no stream of this name; it may have expired", "conv_id"};
}

std::string lookup_body(const KeptStreams* kept, std::uint32_t tenant, const std::vector<std::string>& ids) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const std::string& id : ids) {
    const KeptStreamPtr stream = kept != nullptr ? kept->find(tenant, id) : nullptr;
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

Result<std::vector<std::string>> read_stream_lookup(const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  std::vector<std::string> out;
  const auto* ids = fields.array("conversation_ids");
  bool strings = ids != nullptr && ids->size() <= kLookupMax;
  for (std::size_t i = 0; strings && i < ids->size(); ++i) {
    strings = (*ids)[i].is_string();
    const bool may_be_known = strings && (*ids)[i].get_string().size() <= kSizeLimit<"resume_id_bytes">;
    if (may_be_known) out.emplace_back((*ids)[i].get_string());
  }
  if (!strings) fields.refuse("conversation_ids", "an array of at most " + std::to_string(kLookupMax) + " strings");
  if (!fields.ok()) return fields.error();
  return out;
}

Handled handle_stream(Call call) {
  Result<KeptStreamPtr> found = stream_of(call);
  if (!found) co_return found.error();
  KeptStreamPtr stream = std::move(*found);
  Result<void> done = co_await resume_stream(call.frontend, call.exchange, std::move(stream));
  co_return done;
}

Handled handle_stop_stream(Call call) {
  const Result<KeptStreamPtr> stream = stream_of(call);
  if (!stream) co_return stream.error();
  call.frontend.kept->stop(*stream);
  net::HttpResponse response(204);
  co_await call.exchange.respond(std::move(response));
  co_return Result<void>();
}

Handled handle_stream_lookup(Call call) {
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  auto work = [body = std::move(call.body)] { return read_stream_lookup(body); };
  Result<std::vector<std::string>> ids = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!ids) co_return ids.error();
  std::string body = lookup_body(call.frontend.kept, call.caller.tenant.id, *ids);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
