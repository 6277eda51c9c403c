#include "app/metrics_document.h"

#include <cstdio>
#include <deque>

#include "api/batch/batch_metrics.h"
#include "api/body/media_links.h"
#include "api/core/embedding_service.h"
#include "api/core/idempotency_store.h"
#include "api/delivery/kept_streams.h"
#include "api/llama_server/slot_persister.h"
#include "api/observe/span_exporter.h"
#include "api/schema/recent_schemas.h"
#include "api/session/session_persister.h"
#include "api/session/session_sharing.h"
#include "app/log_writer.h"
#include "app/media_decoders.h"
#include "app/model_keeper.h"
#include "app/record_writer.h"
#include "base/clock.h"
#include "base/energy_meter.h"
#include "engine/admission.h"
#include "engine/compat_metrics.h"
#include "engine/encoding_folder.h"
#include "engine/engine_metrics.h"
#include "engine/session_table.h"
#include "jobs/queue_metrics.h"
#include "net/event_loop.h"
#include "net/frame_server.h"
#include "net/net_metrics.h"
#include "net/offload.h"
#include "publish/kv_channel.h"

namespace chasqui {
namespace {

constexpr const char* kMetricsHead = R"(# Metrics

`GET /metrics` answers in Prometheus' text format; with `?format=json` or `Accept: application/json` as one JSON object,
`{"name{labels}": value}`, which is also what the local socket says to `metrics`. `?names=chasqui` (`vllm`, `llamacpp`)
leaves out the names of others, as a scraper that needs only ours should. A scrape measures nothing:
the answer is read from counters that the workers write without locks, so scrape as often as you like. A page is at most
80 KiB, of several models so much for each, also after years: where it might become more, every second bucket of our
longest histograms is left out; where that is not enough, workers become one sum, and `vllm:` histograms lose buckets
as well.

With several models ([models.md](models.md)) counters and gauges of a model have a label `model`, with several workers
(`--workers`) what tells one from another has a label `worker`; all else, and everything with more than eight of them,
is of all together. No label holds anything that a client says: there are no tenants, sessions or requests in it. (The
names of adapters that are loaded at run time are an administrator's.) Families of `--lora`, `--mmproj`,
`--media-url-hosts`, `--cache-disk`, `--session-dir`, `--shared-store`, `--batch-dir`, `--batch-queue`,
`--slot-save-path`, `--record`, `--kv-events` and `--otlp-endpoint` are there with these options only, and those of
adapters also from the first one on that is loaded at run time.
`chasqui_energy_joules_total` is there where the machine tells its energy
([tracing.md](tracing.md#energy)).

`promtool check metrics` has nothing to say of our names. Of the others it says, with exit status 3, that a metric name
should have no colon, and the like: they are what autoscalers and dashboards read, so they stay. A scraper that lints
asks for `?names=chasqui`.

Everything is since the start of the process. This file is printed by `chasqui metrics`.
)";

struct Section {
  const char* title;
  const char* text;
  const char* prefix;  // of the names; empty: those of the JSON form only
};

constexpr Section kSections[] = {
    {"Ours", "Times of clients are by class of service; `chasqui_inter_token_seconds` is what a reader feels.",
     "chasqui_"},
    {"As vLLM has them",
     "For autoscalers, gateways (`vllm:num_requests_waiting`, `vllm:num_requests_running`, `vllm:kv_cache_usage_perc`\n"
     "are the three that the Gateway API's inference extension needs) and dashboards. Histograms have all of vLLM's\n"
     "bounds and finer ones below. The same numbers as ours, of all workers together.",
     "vllm:"},
    {"As llama-server has them",
     "For dashboards that are there already. Rates are zero while the server is idle; the mean is since the start.",
     "llamacpp:"},
    {"In JSON only", "Histograms by powers of two, `_bucket{le=\"1\"}`, `2`, `4` … `1024`.", ""},
};

void write_section(const Section& section, const std::vector<MetricsPage::Family>& families, std::string& out) {
  const std::string_view prefix = section.prefix;
  out += std::string("\n## ") + section.title + "\n\n" + section.text + "\n\n";
  out += "| name | type | labels | |\n|---|---|---|---|\n";
  for (const MetricsPage::Family& family : families) {
    if (prefix.empty() ? !family.json_only : family.json_only || !family.name.starts_with(prefix)) continue;
    std::string labels;
    for (const std::string_view label : family.labels) {
      labels += labels.empty() ? "`" : ", `";
      labels += label;
      labels += '`';
    }
    out += "| `" + std::string(family.name) + "` | " + std::string(family.type) + " | " + labels + " | " +
           std::string(family.help) + " |\n";
  }
}

struct AllSessionMetrics {
  AllSessionMetrics(net::EventLoop& loop, const Clock& clock) : persister(nullptr, loop, clock) {}

  void add_to(MetricsPage& page) const {
    table.add_to(page);
    persister.add_to(page);
    sharing.add_to(page);
  }

  SessionMetrics table;
  SessionPersister persister;
  SharingMetrics sharing;
};

struct AllBatchMetrics {
  BatchMetrics lines;
  QueueMetrics queue;

  void add_to(MetricsPage& page) const {
    lines.add_to(page);
    queue.add_to(page);
  }
};

std::string written(const MetricsPage& page) {
  std::string out = kMetricsHead;
  for (const Section& section : kSections) write_section(section, page.families(), out);
  return out;
}

}  // namespace

std::string metrics_document() {
  const RealClock clock;
  MetricsPage page;
  net::NetMetrics net_metrics;
  net::EventLoop loop(net_metrics);
  std::deque<EngineMetrics> engine(2);
  for (EngineMetrics& metrics : engine) metrics.name_adapters({"adapter"});
  const IngressMetrics door{};
  const DispatchMetrics dispatch{};
  const Admission admission{AdmissionConfig{}};
  const AllSessionMetrics sessions(loop, clock);
  const SlotMetrics slots{};
  net::OffloadPool offload(loop);
  const SchemaMetrics schemas{};
  const MediaLinkMetrics links{};
  const MediaDecoderMetrics decoders{};
  const LogMetrics log{};
  const EnergyMetrics energy{};
  const net::FrameMetrics frames{};
  const KeptStreamMetrics kept{};
  const AllBatchMetrics batches{};
  const IdempotencyMetrics idempotency{};
  const EncodingMetrics encodings{};
  const ExchangeMetrics exchange{};
  const KeeperMetrics keeper{};
  const SwapMetrics swaps{};
  const LoadedModel no_model;
  const EmbeddingService embeddings(no_model, loop, {});
  const RecordMetrics recording{};
  const publish::KvEventMetrics kv_events{};
  const SpanExporter spans(loop, offload, net::HttpTarget{}, SpanSource{});

  for (std::size_t i = 0; i < engine.size(); ++i) {
    page.label_with("worker=\"" + std::to_string(i) + '"');
    engine[i].each_worker.add_to(page);
  }
  page.label_with({});
  for (const EngineMetrics& metrics : engine) metrics.add_shared_to(page);
  for (const EngineMetrics& metrics : engine) metrics.of_disk.add_to(page);
  exchange.add_to(page);
  for (const EngineMetrics& metrics : engine) metrics.of_media.add_to(page);
  encodings.add_to(page);
  door.add_to(page);
  dispatch.add_to(page);
  admission.add_to(page);
  sessions.add_to(page);
  slots.add_to(page);
  net_metrics.add_to(page);
  frames.add_to(page);
  offload.add_to(page);
  schemas.add_to(page);
  links.add_to(page);
  decoders.add_to(page);
  log.add_to(page);
  energy.add_to(page);
  keeper.add_to(page);
  swaps.add_to(page);
  spans.metrics().add_to(page);
  recording.add_to(page);
  kv_events.add_to(page);
  kept.add_to(page);
  batches.add_to(page);
  idempotency.add_to(page);
  embeddings.metrics().add_to(page);
  add_vllm_metrics(page, engine, "model", 1);
  add_llama_server_metrics(page, engine);

  return written(page);
}

int print_metrics_document() {
  std::fputs(metrics_document().c_str(), stdout);
  return 0;
}

}  // namespace chasqui
