#include "api/llama_server/slots.h"

#include <charconv>

#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/llama_server/slot_persister.h"
#include "base/json_writer.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/event_signal.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// What was asked for, but for the text.
void write_params(JsonWriter& json, const Request& request, const AdapterList& adapters) {
  json.begin_object();
  json.field("n_predict", request.max_tokens);
  json.field("temperature", request.sampling.temperature);
  json.field("top_k", request.sampling.top_k);
  json.field("top_p", request.sampling.top_p);
  json.field("min_p", request.sampling.min_p);
  json.field("seed", request.sampling.seed.value_or(0));
  json.field("cache_prompt", request.use_cache);
  json.field("priority", name(request.service_class));
  json.begin_array("lora");
  const std::vector<AdapterUse> none;
  for (const AdapterUse& use : request.adapters ? request.adapters->uses : none) {
    json.begin_object();
    json.field("id", use.adapter);
    const auto listed = adapters.at_place(use.adapter);  // none: it was unloaded since
    if (listed && adapters[*listed].version == use.version) json.field("name", adapters[*listed].name);
    json.field("scale", use.scale);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_slot(JsonWriter& json, const ServedModel& served, std::uint32_t tenant, std::int32_t id) {
  const SlotUse use = served.engine.slot(SlotId{id});
  const bool busy = use.request.value != 0;
  json.begin_object();
  json.field("id", id);
  json.field("n_ctx", served.engine.shape().cells_per_slot);
  json.field("speculative", served.engine.speculation().draft_tokens_max > 0);
  json.field("is_processing", busy);
  if (busy) {
    json.field("id_task", use.request.value);
    json.field("n_prompt_tokens", use.prompt);
    json.field("n_prompt_tokens_processed", std::max(std::min(use.computed, use.prompt) - use.cached, 0));
    json.field("n_prompt_tokens_cache", use.cached);
    const RequestPtr request = served.streams.request_of(use.request);
    if (request && request->tenant.id == tenant) {
      json.key("params");
      write_params(json, *request, *served.adapters.list());
    }
    json.begin_array("next_token");
    json.begin_object();
    json.field("has_next_token", use.left > 0);
    json.field("has_new_line", false);
    json.field("n_remain", use.left);
    json.field("n_decoded", use.generated);
    json.end_object();
    json.end_array();
  }
  json.end_object();
}

std::string slots_body(const ServedModel& served, std::uint32_t tenant, bool& free) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (std::int32_t id = 0; id < served.engine.shape().slots; ++id) {
    write_slot(json, served, tenant, id);
    free = free || served.engine.slot(SlotId{id}).request.value == 0;
  }
  json.end_array();
  return out;
}

std::string transfer_body(std::int32_t id, const std::string& filename, bool saved, const SlotTransfer& done) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id_slot", id);
  json.field("filename", filename);
  json.field(saved ? "n_saved" : "n_restored", done.tokens);
  json.field(saved ? "n_written" : "n_read", done.bytes);
  json.begin_object("timings");
  json.field(saved ? "save_ms" : "restore_ms", to_milliseconds(done.took));
  json.end_object();
  json.end_object();
  return out;
}

Result<std::string> read_filename(const std::string& body) {
  const auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const auto name = fields.string("filename");
  if (!fields.ok()) return fields.error();
  if (!name) return invalid_field("filename", "filename must be given");
  std::string filename(*name);
  if (auto good = SlotStore::check_name(filename); !good) return good.error();
  return filename;
}

Handled transfer(Call call, std::int32_t id, bool save) {
  const Tenant tenant = call.caller.tenant;
  SlotPersister& slots = *call.served.slots;
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  auto read = [body = std::move(call.body)] { return read_filename(body); };
  Result<std::string> filename = co_await call.frontend.offload.run(std::move(read), std::move(terms));
  if (!filename) co_return filename.error();
  const bool alone = call.frontend.keys.tenants() <= 1;
  net::Awaitable<Result<SlotTransfer>> working =
      save ? slots.save(SlotId{id}, tenant, *filename, alone) : slots.restore(SlotId{id}, tenant, *filename);
  Result<SlotTransfer> done = co_await std::move(working);
  if (!done) co_return done.error();
  std::string body = transfer_body(id, *filename, save, *done);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

// The worker answers between two steps, and when no file is left. The loop waits for it without a thread: a step may be
// long.
struct ForgetAnswer {
  explicit ForgetAnswer(net::EventLoop& loop) : told(loop) {}
  net::EventSignal told;
  Result<std::size_t> copies = std::size_t{0};
};

net::Awaitable<Result<std::size_t>> forget(net::EventLoop& loop, Engine& engine, Tenant tenant) {
  auto answer = std::make_shared<ForgetAnswer>(loop);
  engine.forget(tenant, [&loop, answer](Result<std::size_t> copies) mutable {
    loop.post([answer = std::move(answer), copies = std::move(copies)]() mutable {
      answer->copies = std::move(copies);
      answer->told.notify();
    });
  });
  co_await answer->told.wait();
  co_return answer->copies;
}

// Of all versions of the model that are there.
net::Awaitable<Result<std::size_t>> forget_all(net::EventLoop& loop, ServedModel& served, Tenant tenant) {
  std::vector<std::unique_ptr<ModelUse>> uses;
  std::vector<ServedModel*> versions = served.older;
  versions.push_back(&served);
  for (ServedModel* const one : versions) uses.push_back(std::make_unique<ModelUse>(*one));
  std::size_t sum = 0;
  for (ServedModel* const one : versions) {
    const Result<std::size_t> copies = co_await forget(loop, one->engine, tenant);
    if (!copies) co_return copies.error();
    sum += *copies;
  }
  co_return sum;
}

std::string erased_body(const std::string& id, std::size_t erased) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id_slot", std::stoi(id));
  json.field("n_erased", erased);
  json.end_object();
  return out;
}

// An error where it may not be done.
Result<void> permitted(const ServedModel& served, const Caller& caller, const std::string& id,
                       std::string_view action) {
  const std::int32_t slots = served.engine.shape().slots;
  std::int32_t number = -1;
  const auto [end, failed] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (failed != std::errc{} || end != id.data() + id.size() || number < 0 || number >= slots) {
    return invalid_field("", "the slot must be a whole number between 0 and " + std::to_string(slots - 1));
  }
  const bool saves = action == "save" || action == "restore";
  if (saves && served.slots == nullptr) {
    return Error{ErrorCode::not_supported, "this server does not save or restore slots; start it with --slot-save-path",
                 ""};
  }
  if (!saves && action != "erase") return invalid_field("", "action must be erase, save or restore");
  if (served.config.cache_shared && caller.tenant.id != 0 && !caller.admin) {
    return Error{ErrorCode::forbidden,
                 "the cache is shared by tenants: only a key with admin=yes may " + std::string(action) + " it", ""};
  }
  return Result<void>();
}

}  // namespace

Handled handle_slots(Call call) {
  if (!call.served.config.show_slots) {
    co_return Error{ErrorCode::not_supported, "this server does not show its slots; start it with --slots", ""};
  }
  bool free = false;
  std::string body = slots_body(call.served, call.caller.tenant.id, free);
  const auto wanted = call.exchange.request().query("fail_on_no_slot");
  if (wanted && !wanted->empty() && *wanted != "0" && !free) {
    co_return Error{ErrorCode::unavailable, "no slot is free", ""};
  }
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_slot_action(Call call) {
  const std::string id = call.exchange.param("id");
  const std::string action = call.exchange.request().query("action").value_or("");
  if (const auto may = permitted(call.served, call.caller, id, action); !may) co_return may.error();
  const Result<Permit> permit = enter_aside(call);
  if (!permit) co_return permit.error();
  if (action != "erase") {
    Result<void> done = co_await transfer(std::move(call), std::stoi(id), action == "save");
    co_return done;
  }
  Result<std::size_t> erased = co_await forget_all(call.frontend.loop, call.served, call.caller.tenant);
  if (!erased) co_return erased.error();
  std::string body = erased_body(id, *erased);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
