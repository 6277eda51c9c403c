// What `chasqui serve` was asked to do: flags, then environment, then defaults. Flags and LLAMA_ARG_* variables are
// llama-server's for everything that both servers have. A plain value, constant after start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/delivery/kept_stream_limits.h"
#include "app/adapter_options.h"
#include "app/media_options.h"
#include "app/operation_options.h"
#include "app/shared_store_options.h"
#include "app/speculation_options.h"
#include "app/value_origin.h"
#include "app/web_options.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/wakeup.h"
#include "model/embedder.h"
#include "model/llama_options.h"
#include "model/model_config.h"
#include "publish/kv_events_config.h"
#include "sched/slot_policy.h"
#include "sched/targets.h"

namespace chasqui {

class MediaDecoders;

enum class EngineKind { llama, sim };

constexpr std::int64_t kCacheRam = kCountLimit<"prefix_cache_bytes"> / (1 << 20);
constexpr std::int64_t kCacheDisk = kCountLimit<"disk_cache_bytes"> / (1 << 20);
constexpr std::int64_t kBatchDisk = kCountLimit<"batch_disk_bytes"> / (1 << 20);

struct ServeConfig {
  EngineKind engine = EngineKind::llama;
  std::optional<double> sim_step_ms;     // none: as a small model
  std::vector<std::string> model_files;  // --model, as often as it was given
  std::vector<std::string> hf_repos;     // --hf-repo, likewise
  std::vector<std::string> model_names;  // --alias, likewise
  std::string models_preset;             // file with a section for each model; empty: none
  std::string models_dir;                // folder of files that are models; empty: none
  std::string model_path;                // of this one; empty: the built-in demo model
  std::string hf_repo;                   // … where the path is of what it means; empty: a file was named
  std::string hf_file;                   // … in it; empty: as its name says
  std::string not_found;                 // why the path is none; empty: it was found, or not looked for
  std::string name;                      // what it is called before all others; empty: as `alias` says
  std::string alias;                     // more names behind commas; empty: the model's own name
  std::int32_t sharers = 1;              // models that share the machine at once, this one among them
  std::int32_t listed = 1;               // models of the server, loaded or not
  bool rests = false;                    // it is too large to be there twice: it goes before a new version comes
  bool on_demand = false;                // it can be unloaded, and loaded again
  bool at_start = true;                  // it is loaded before there are requests
  std::int32_t models_max = 4;           // of those on demand, loaded at once; 0: no limit
  std::uint64_t models_memory = 0;       // bytes that loaded models may need together; 0: as the machine has
  bool models_autoload = true;           // requests load them
  bool models_trial = true;              // each is tried in a process of its own first
  bool on_trial = false;                 // this is such a process
  bool check_model = false;              // requests that name another model are refused
  std::string tags;                      // behind commas, for clients that sort models
  std::string chat_template_file;
  GrammarEngine grammar_engine = GrammarEngine::chasqui;
  bool forced_tokens = true;
  SchemaOrder schema_order = SchemaOrder::written;
  AdapterFlags adapters;
  MediaFlags media;
  std::shared_ptr<MediaDecoders> decoders;  // of all models of the server; null: none is in a process of its own
  OperationFlags operation;
  std::int32_t gpu_layers = -1;
  bool rpc_public = false;  // machines of --rpc may be anywhere; app/llama_flags looks for it before this is read
  bool use_mmap = true;
  bool use_mlock = false;

  std::optional<Pooling> pooling;  // of embeddings; none: as the model says

  bool keep_tuning = true;   // what is measured at start, for the next one
  std::string tuning_cache;  // folder for it; empty: in that of the user's caches

  ModelConfig model;         // of all workers together; slots and cells may be 0: chosen from the model
  std::int32_t workers = 1;  // contexts that share the model
  bool fit = true;           // cells that are not given are chosen from the model and the memory
  std::optional<std::int64_t> fit_target_mib;  // … which leave so much of it free
  std::int64_t predict = -1;                   // tokens of an answer when a request does not say
  bool context_shift = false;                  // answers go on where their context is full
  std::int64_t cache_reuse = 0;                // tokens of a text that is moved up; 0: none is
  std::int64_t keep = 0;                       // … and of a prompt so many tokens stay; -1: all

  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::string unix_socket;  // HTTP on this path as well
  std::string socket;       // frames on this path (docs/protocol.md)
  std::uint32_t socket_mode = 0600;
  std::vector<std::string> api_keys;
  bool keys_from_environment = false;     // those are LLAMA_API_KEY's
  std::string api_key_file;               // more of them, with names and shares; read again on SIGHUP
  bool no_auth = false;                   // allows a public address without a key
  std::vector<std::string> admin_listen;  // addresses and paths for operators; empty: none
  bool admin_public = false;              // … which other machines may reach
  std::string agent_check;                // address for HAProxy's agent checks; empty: none
  publish::KvEventsConfig kv_events;      // what routers are told of prefix caches
  std::string tls_certificate;            // PEM files for the TCP door, read again on SIGHUP; empty: plain HTTP
  std::string tls_key;
  bool page = true;  // at "/"
  WebOptions web;

  bool cache_prompt = true;              // what a request gets that does not say
  std::int64_t cache_ram = kCacheRam;    // MiB of host memory for what was computed; -1: no limit, 0: nothing is kept
  bool cache_shared = false;             // between tenants
  std::size_t checkpoints_max = 4096;    // of one prompt; 0: none
  std::int64_t checkpoint_least = 0;     // tokens between two of them
  std::int64_t checkpoint_every = 4096;  // tokens of a prompt, where memory cannot be cut; 0: no checkpoints
  std::string cache_disk;                // folder for what leaves memory; empty: it is gone
  std::int64_t cache_disk_mib = kCacheDisk;
  std::string slot_save_path;  // folder for slots that clients save; empty: they cannot
  std::int64_t slot_save_mib = kCacheDisk;

  std::string session_dir;  // folder in which sessions outlive the process; empty: they do not
  Duration session_ttl = kTimeLimit<"session_ttl_seconds">;  // since the last use, where a client does not say
  std::size_t sessions_max = kSizeLimit<"sessions">;
  std::optional<std::size_t> tenant_sessions;  // 0: no limit; none: a quarter of all for each tenant that has a key

  SharedStoreFlags shared;  // what nodes share; of the whole server

  std::string batch_dir;  // folder for files and batches; empty: there are none
  std::int64_t batch_mib = kBatchDisk;
  std::string batch_queue;      // URL of the queue that nodes share; empty: each runs its own batches
  std::size_t batch_lines = 0;  // that run at once; 0: as many as there are slots

  KeptStreamLimits kept;  // streams that clients may come back to

  SpeculationOptions speculation;

  SchedulerTargets targets;
  const SlotPolicy* policy = &fair_policy();
  std::size_t queue_requests = kSizeLimit<"queue_requests">;
  std::int64_t queue_tokens = kCountLimit<"queue_tokens">;       // 0: no limit
  std::vector<Duration> queue_wait;                              // of each class; none, or zero: no limit
  Duration queue_timeout = kTimeLimit<"queue_timeout_seconds">;  // zero: none
  std::optional<std::size_t> tenant_requests;  // 0: no limit; none: 64 for each where there are several
  Duration request_timeout{};                  // zero: none
  Duration write_timeout = kTimeLimit<"write_seconds">;
  Duration ping_every = kTimeLimit<"silent_seconds">;  // zero: streams get no comments
  Duration drain_time = kTimeLimit<"drain_seconds">;
  Wakeup::Kind wakeup = Wakeup::Kind::eventfd;

  LogLevel log_level = LogLevel::info;
  std::optional<LogFormat> log_format;  // none: by whether the log goes to a terminal
  std::string log_file;                 // empty: standard error
  bool log_requests = true;             // a line for each, when it has ended
  bool short_request_lines = true;      // … of a log that is text
  bool log_prompts = false;             // … and its body
  std::string record;                   // file for what is scheduled (docs/recordings.md); empty: nothing is recorded
  std::string otlp_endpoint;            // http://host:port of a collector of spans; empty: no connection is made

  LlamaOptionsPtr llama;           // flags of llama-server's that llama-common has read; null: none
  std::vector<std::string> notes;  // … and those that have no effect here, for the log

  std::vector<std::string> command_line;  // as it was typed, the program first
  ValueOrigins origins;                   // of what was not typed, for messages

  // Of the whole server's: one for each model, the first one answers requests that name none. What is of the server
  // alone counts in none of them.
  std::vector<ServeConfig> models;

  // SIGHUP means that files are to be read or opened again. Otherwise it means what it means everywhere: the terminal
  // has gone.
  bool reads_files_again() const { return !api_key_file.empty() || !log_file.empty() || !tls_certificate.empty(); }
};

// What the command line says: what to run, or an exit code after help, version or a usage error (already printed).
struct CommandLine {
  std::optional<ServeConfig> serve;
  int exit_code = 0;
  std::function<int()> command{};  // any other; returns the exit code
};

CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace chasqui
