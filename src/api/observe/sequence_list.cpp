#include "api/observe/sequence_list.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/core/answer.h"
#include "api/core/cache_use_json.h"
#include "api/core/errors.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/core/key_ring.h"
#include "api/core/model_table.h"
#include "api/core/served_model.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

constexpr std::size_t kListed = kSizeLimit<"sequences_listed">;

struct Seat {
  std::int32_t slot = -1;  // none: it waits
  SlotUse use;
};

struct Watched {
  const ServedModel* served;
  RequestPtr request;
  Seat seat;

  bool waits() const { return seat.slot < 0; }
};

// Of a tenant, or of a model.
struct Sum {
  std::string name;
  std::int64_t running = 0, waiting = 0, generated = 0;

  void add(const Watched& one) {
    ++(one.waits() ? waiting : running);
    generated += one.seat.use.generated;
  }
};

// Versions that leave have sequences, too. A model that was never loaded has none.
std::vector<ServedModel*> chosen(const ModelTable& models, const net::HttpRequest& request) {
  const auto name = request.query("model");
  if (!name || name->empty()) return models.all_versions();
  const Result<const ModelEntry*> entry = models.find(*name);
  if (!entry || (*entry)->served == nullptr) return {};
  return {(*entry)->served};
}

// Those that run by slot, then those that wait by arrival.
std::vector<Watched> watch(const ServedModel& served) {
  std::vector<RequestPtr> requests = served.streams.requests();
  if (requests.empty()) return {};
  std::unordered_map<RequestId, Seat> seats;
  for (std::int32_t slot = 0; slot < served.engine.shape().slots; ++slot) {
    const SlotUse use = served.engine.slot(SlotId{slot});
    if (use.request.value != 0) seats[use.request] = {slot, use};
  }
  std::vector<Watched> all;
  for (RequestPtr& request : requests) {
    const auto seat = seats.find(request->id);
    all.push_back({&served, std::move(request), seat != seats.end() ? seat->second : Seat{}});
  }
  std::ranges::sort(all, [](const Watched& a, const Watched& b) {
    if (a.waits() != b.waits()) return b.waits();
    return a.waits() ? a.request->id < b.request->id : a.seat.slot < b.seat.slot;
  });
  return all;
}

// Those that run, model by model, before those that wait, by arrival.
std::vector<Watched> watch_all(const std::vector<ServedModel*>& models) {
  std::vector<Watched> all;
  for (const ServedModel* const served : models) std::ranges::move(watch(*served), std::back_inserter(all));
  const auto place = [](const Watched& one) {
    return std::pair(one.waits(), one.waits() ? one.request->arrival : TimePoint{});
  };
  std::ranges::stable_sort(all, {}, place);
  return all;
}

std::string_view state_of(const Watched& one) {
  if (one.waits()) return "waiting";
  return one.seat.use.generated == 0 ? "reading" : "writing";
}

void write_sequence(JsonWriter& json, const KeyRing& keys, const Watched& one) {
  const Request& request = *one.request;
  const auto prompt = static_cast<TokenCount>(request.prompt.size());
  json.begin_object();
  json.field("id", request.id.value);
  json.field("model", one.served->config.name);
  json.field("tenant", keys.name_of(request.tenant));
  json.field("class", name(request.service_class));
  json.field("state", state_of(one));
  if (!one.waits()) json.field("slot", one.seat.slot);
  json.field("prompt_tokens", prompt);
  json.field("read_tokens", one.waits() ? 0 : std::min(one.seat.use.computed, prompt));
  json.field("cached_tokens", one.seat.use.cached);
  if (!one.waits()) {
    json.key("cache");
    write_cache_use(json, one.seat.use.cache, one.seat.use.cached);
  }
  json.field("generated_tokens", one.seat.use.generated);
  json.field("max_tokens", request.max_tokens);
  json.field("age_ms", to_milliseconds(one.served->clock.now() - request.arrival));
  json.end_object();
}

template <class Sums>
void write_sums(JsonWriter& json, std::string_view list, std::string_view of, const Sums& sums) {
  json.begin_array(list);
  for (const auto& [key, sum] : sums) {
    json.begin_object();
    json.field(of, sum.name);
    json.field("running", sum.running);
    json.field("waiting", sum.waiting);
    json.field("generated_tokens", sum.generated);
    json.end_object();
  }
  json.end_array();
}

std::string sequences_body(const std::vector<ServedModel*>& models, const KeyRing& keys) {
  const std::vector<Watched> all = watch_all(models);
  std::map<std::uint32_t, Sum> tenants;
  std::map<std::string, Sum> by_model;  // versions of one are one
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("total", all.size());
  json.begin_array("sequences");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < kListed) write_sequence(json, keys, all[i]);
    const Tenant& tenant = all[i].request->tenant;
    Sum& sum = tenants[tenant.id];
    if (sum.running + sum.waiting == 0) sum.name = keys.name_of(tenant);
    sum.add(all[i]);
    const std::string& model = all[i].served->config.name;
    Sum& of_model = by_model[model];
    of_model.name = model;
    of_model.add(all[i]);
  }
  json.end_array();
  write_sums(json, "tenants", "tenant", tenants);
  write_sums(json, "models", "model", by_model);
  json.end_object();
  return out;
}

}  // namespace

Handled handle_sequences(const ModelTable& models, Call call) {
  if (!call.frontend.keys.may_watch(call.caller, call.exchange.request())) co_return watching_refused();
  std::string body = sequences_body(chosen(models, call.exchange.request()), call.frontend.keys);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
