#include "app/settings.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "api/admin/page.h"
#include "cli/machine.h"

namespace chasqui {
namespace {

// Of the machine, or of its control group where that has less: a container.
std::size_t usable_memory() {
  const std::uint64_t bytes = cli::look_at_machine().usable_bytes();
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{8} << 30;  // not told: a small machine of today
}

// What is kept must not crowd out what runs, the page cache of the model file included.
ReuseConfig reuse_config(const ServeConfig& config) {
  constexpr std::size_t kMiB = 1 << 20;
  ReuseConfig out;
  out.shared_by_tenants = config.cache_shared;
  out.cache.bytes = config.cache_ram < 0 ? std::numeric_limits<std::size_t>::max() / 2
                                         : std::min(static_cast<std::size_t>(config.cache_ram) * kMiB,
                                                    usable_memory() / 4 / static_cast<std::size_t>(config.listed));
  if (config.cache_disk.empty()) return out;
  // What waits to be written is in memory, too.
  out.disk.emplace();
  out.disk->bytes = static_cast<std::uint64_t>(config.cache_disk_mib) * kMiB;
  out.disk->queue_bytes = out.cache.bytes / 4;
  out.cache.bytes -= out.disk->queue_bytes;
  return out;
}

}  // namespace

std::uint64_t disk_for_encodings(const ServeConfig& config) {
  constexpr std::uint64_t kPart = 8;
  return (static_cast<std::uint64_t>(config.cache_disk_mib) << 20) / kPart;
}

bool can_sleep(const ServeConfig& config) {
  return config.on_demand || config.rests || config.operation.sleep_after > Duration::zero();
}

AdmissionConfig admission_config(const ServeConfig& config, const ModelShape& shape) {
  AdmissionConfig out;
  out.slots = shape.slots;
  out.queue_requests = config.queue_requests;
  out.queue_tokens = config.queue_tokens;
  std::ranges::copy(config.queue_wait, out.queue_wait.begin());
  return out;
}

RequestLimits request_limits(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape) {
  RequestLimits limits;
  limits.vocabulary = shape.vocabulary;
  limits.context = shape.cells_per_slot;
  limits.rows_max = shape.rows_max;
  limits.slots = shape.slots;
  limits.max_tokens_default = static_cast<TokenCount>(config.predict);
  limits.timeout_default = config.request_timeout;
  limits.queue_timeout = config.queue_timeout;
  limits.shifts = config.context_shift && shape.shifts;
  limits.keep_default = config.keep;
  // Where slots stay as they are.
  limits.moves_text = shape.shifts && shape.kv_block > 0 && !shape.unified && config.cache_ram != 0;
  limits.chunk_default = config.cache_reuse;
  limits.begin_tokens = model.adds_bos ? 1 : 0;
  if (!shape.cuts_snapshots && config.cache_ram != 0 && config.checkpoints_max > 0) {
    const auto least = static_cast<TokenCount>(config.checkpoint_least);
    limits.checkpoint_every = std::max(static_cast<TokenCount>(config.checkpoint_every), least);
    if (config.checkpoint_every == 0) limits.checkpoint_every = 0;
    limits.checkpoint_least = least;
    limits.checkpoints_max = config.checkpoints_max;
  }
  return limits;
}

EngineConfig engine_config(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape) {
  EngineConfig out;
  for (const AdapterInfo& adapter : model.adapters) out.adapters.push_back(adapter.name);
  out.reuse = reuse_config(config);
  out.reuse.notes_slots = !config.slot_save_path.empty() || config.shared.wanted();
  out.targets = config.targets;
  out.policy = config.policy;
  out.draft_tokens_max = config.speculation.draft_tokens_max();
  out.draft_tokens_min = std::min(config.speculation.least, out.draft_tokens_max);
  out.ngram = config.speculation.ngram;
  out.synthetic_acceptance = config.speculation.synthetic_acceptance;
  out.sleep_after = config.operation.sleep_after;
  out.stuck_after = config.operation.stuck_after;
  // Admission refuses first. A request that was cancelled gives its permit back a step before the engine is rid of it,
  // hence the room.
  const AdmissionConfig door = admission_config(config, shape);
  out.beyond_slots_max = door.places() + door.places_for_few() + static_cast<std::size_t>(shape.slots) + 64;
  out.pins_max = config.sessions_max;
  return out;
}

NodeConfig node_config(const ServeConfig& config, const Listeners& listeners) {
  NodeConfig out;
  FrontendConfig& frontend = out.frontend;
  frontend.version = CHASQUI_VERSION;
  constexpr Duration kYear = seconds(365 * 86400);  // far away, and no sum with it overflows
  frontend.ping_every = config.ping_every > Duration::zero() ? config.ping_every : kYear;
  frontend.tenant_requests = config.tenant_requests.value_or(frontend.tenant_requests);
  frontend.anonymous_requests = config.tenant_requests.value_or(0);
  out.page = config.page;
  out.page_policy = page_policy(config.web.mcp_origins);
  out.web = web_policy(config, listeners);
  out.api_prefix = config.web.api_prefix;
  out.http.write_time = config.write_timeout;
  out.drain_time = config.drain_time;
  return out;
}

net::HttpLimits admin_limits(const net::HttpLimits& others) {
  net::HttpLimits out = others;
  out.connections = kSizeLimit<"admin_connections">;
  out.body_bytes = out.header_bytes;  // no route there reads one
  return out;
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    if (!name.empty()) out.emplace_back(name);
  }
  return out;
}

std::vector<std::string> names_of_model(const ServeConfig& config) {
  std::vector<std::string> out = names_in(config.alias);
  if (config.name.empty()) return out;
  std::erase(out, config.name);
  out.insert(out.begin(), config.name);
  return out;
}

ServedModelConfig model_config(const ServeConfig& config, const LoadedModel& model) {
  ServedModelConfig out;
  out.aliases = names_of_model(config);
  if (out.aliases.empty()) out.aliases.push_back(model.info.name);
  out.name = out.aliases.front();
  out.tags = names_in(config.tags);
  out.system_fingerprint = "chasqui-" CHASQUI_VERSION;
  out.loaded_at = RealClock().unix_seconds();
  out.tenant_sessions = config.tenant_sessions.value_or((config.sessions_max + 3) / 4);
  out.anonymous_sessions = config.tenant_sessions.value_or(0);
  out.cache_prompt = config.cache_prompt;
  out.cache_shared = config.cache_shared;
  out.show_slots = config.operation.show_slots;
  out.traces = !config.otlp_endpoint.empty();
  out.cache_bytes = reuse_config(config).cache.bytes;
  out.disk_cache_bytes = config.cache_disk.empty() ? 0 : static_cast<std::uint64_t>(config.cache_disk_mib) << 20;
  const bool shares = config.shared.wanted() && !config.cache_disk.empty();
  out.shared_cache_bytes = shares ? static_cast<std::uint64_t>(config.shared.cache_mib) << 20 : 0;
  out.defaults = config.llama ? config.llama->defaults(model.info) : LlamaOptions().defaults(model.info);
  out.defaults.schema_order = config.schema_order;
  out.defaults.media_folder = config.media.folder;
  return out;
}

SessionLimits session_limits(const ServeConfig& config, const ModelShape& shape) {
  SessionLimits out;
  out.tokens = shape.cells_per_slot - 1;
  out.sessions = config.sessions_max;
  out.ttl = config.session_ttl;
  return out;
}

}  // namespace chasqui
