#include "api/sequence_list.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "api/answer.h"
#include "api/errors.h"
#include "base/json_writer.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kListed = kSizeLimit<"sequences_listed">;

struct Seat {
  std::int32_t slot = -1;  // none: it waits
  SlotUse use;
};

struct Watched {
  RequestPtr request;
  Seat seat;

  bool waits() const { return seat.slot < 0; }
};

struct TenantSum {
  std::string name;
  std::int64_t running = 0, waiting = 0, generated = 0;
};

// Those that run by slot, then those that wait by arrival.
std::vector<Watched> watch(const Service& service) {
  std::unordered_map<RequestId, Seat> seats;
  for (std::int32_t slot = 0; slot < service.engine.shape().slots; ++slot) {
    const SlotUse use = service.engine.slot(SlotId{slot});
    if (use.request.value != 0) seats[use.request] = {slot, use};
  }
  std::vector<Watched> all;
  for (RequestPtr& request : service.streams.requests()) {
    const auto seat = seats.find(request->id);
    all.push_back({std::move(request), seat != seats.end() ? seat->second : Seat{}});
  }
  std::ranges::sort(all, [](const Watched& a, const Watched& b) {
    if (a.waits() != b.waits()) return b.waits();
    return a.waits() ? a.request->id < b.request->id : a.seat.slot < b.seat.slot;
  });
  return all;
}

std::string_view state_of(const Watched& one) {
  if (one.waits()) return "waiting";
  return one.seat.use.generated == 0 ? "reading" : "writing";
}

void write_sequence(JsonWriter& json, const Service& service, const Watched& one) {
  const Request& request = *one.request;
  const auto prompt = static_cast<TokenCount>(request.prompt.size());
  json.begin_object();
  json.field("id", request.id.value);
  json.field("tenant", service.keys.name_of(request.tenant));
  json.field("class", name(request.service_class));
  json.field("state", state_of(one));
  if (!one.waits()) json.field("slot", one.seat.slot);
  json.field("prompt_tokens", prompt);
  json.field("read_tokens", one.waits() ? 0 : std::min(one.seat.use.computed, prompt));
  json.field("cached_tokens", one.seat.use.cached);
  json.field("generated_tokens", one.seat.use.generated);
  json.field("max_tokens", request.max_tokens);
  json.field("age_ms", to_milliseconds(service.clock.now() - request.arrival));
  json.end_object();
}

std::string sequences_body(const Service& service) {
  const std::vector<Watched> all = watch(service);
  std::map<std::uint32_t, TenantSum> tenants;
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("total", all.size());
  json.key("sequences");
  json.begin_array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < kListed) write_sequence(json, service, all[i]);
    const Tenant& tenant = all[i].request->tenant;
    TenantSum& sum = tenants[tenant.id];
    if (sum.running + sum.waiting == 0) sum.name = service.keys.name_of(tenant);
    ++(all[i].waits() ? sum.waiting : sum.running);
    sum.generated += all[i].seat.use.generated;
  }
  json.end_array();
  json.key("tenants");
  json.begin_array();
  for (const auto& [id, sum] : tenants) {
    json.begin_object();
    json.field("tenant", sum.name);
    json.field("running", sum.running);
    json.field("waiting", sum.waiting);
    json.field("generated_tokens", sum.generated);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return out;
}

}  // namespace

net::Awaitable<void> handle_sequences(Service& service, net::HttpExchange& exchange) {
  if (!service.keys.may_watch(exchange.request())) {
    Error error{ErrorCode::forbidden, "only for clients on this machine, or with a key that has admin=yes", ""};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  std::string body = sequences_body(service);
  co_await respond_json(exchange, std::move(body));
}

}  // namespace chasqui
