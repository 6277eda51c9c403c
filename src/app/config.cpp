#include "app/config.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "app/door_options.h"
#include "app/folder_options.h"

namespace chasqui {
namespace {

// llama-server's short flags of several letters, which CLI11 would read as bundles of one-letter flags.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kLongNames = {{
    {"-np", "--parallel"},
    {"-ub", "--ubatch-size"},
    {"-tb", "--threads-batch"},
    {"-ngl", "--gpu-layers"},
    {"-fa", "--flash-attn"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-kvu", "--kv-unified"},
    {"-to", "--timeout"},
    {"--n-predict", "--predict"},
    {"--n-gpu-layers", "--gpu-layers"},
}};

std::vector<std::string> with_long_names(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    for (const auto& [old_name, new_name] : kLongNames) {
      if (argument == old_name) argument = new_name;
    }
  }
  return arguments;
}

const std::map<std::string, EngineKind> kEngines = {{"llama", EngineKind::llama}, {"sim", EngineKind::sim}};
const std::map<std::string, FlashAttention> kFlashAttention = {
    {"auto", FlashAttention::automatic}, {"on", FlashAttention::on}, {"off", FlashAttention::off}};
const std::map<std::string, KvType> kKvTypes = {{"f16", KvType::f16}, {"q8_0", KvType::q8_0}};
const std::map<std::string, Wakeup::Kind> kWakeups = {
    {"eventfd", Wakeup::Kind::eventfd}, {"pipe", Wakeup::Kind::pipe}, {"polling", Wakeup::Kind::polling}};
const std::map<std::string, Policy> kPolicies = {{"chasqui", Policy::chasqui}, {"fcfs", Policy::fcfs}};
const std::map<std::string, LogLevel> kLogLevels = {{"debug", LogLevel::debug},
                                                    {"info", LogLevel::info},
                                                    {"warning", LogLevel::warning},
                                                    {"error", LogLevel::error},
                                                    {"off", LogLevel::off}};
const std::map<std::string, LogFormat> kLogFormats = {{"text", LogFormat::text}, {"json", LogFormat::json}};

// An option with one of a few words as its value.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value, const std::map<std::string, Value>& words,
                        const std::string& help) {
  std::string allowed;
  for (const auto& [word, unused] : words) allowed += (allowed.empty() ? "" : "|") + word;
  return app
      .add_option_function<std::string>(
          name, [&value, &words](const std::string& word) { value = words.at(word); }, help)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(allowed);
}

// Seconds, stored as a Duration.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& value, const std::string& help) {
  return app
      .add_option_function<double>(
          name, [&value](double s) { value = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)); },
          help)
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS");
}

// One number of seconds for all classes, or one for each.
CLI::Option* add_waits(CLI::App& app, ServeConfig& config) {
  return app
      .add_option_function<std::vector<double>>(
          "--queue-wait",
          [&config](const std::vector<double>& waits) {
            if (waits.size() != 1 && waits.size() != kServiceClasses) {
              throw CLI::ValidationError("--queue-wait", "takes one number of seconds, or one for each of 3 classes");
            }
            config.queue_wait.resize(kServiceClasses);
            for (std::size_t c = 0; c < kServiceClasses; ++c) {
              const std::chrono::duration<double> wait(waits.size() == 1 ? waits[0] : waits[c]);
              config.queue_wait[c] = std::chrono::duration_cast<Duration>(wait);
            }
          },
          "longest predicted wait for a first token, for all classes or for each; 0: no limit")
      ->delimiter(',')
      ->expected(1, static_cast<int>(kServiceClasses))
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS[,S,S]");
}

void add_model_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Model";
  app.add_option("-m,--model", config.model_path, "GGUF file to serve; without it the built-in demo model")
      ->envname("LLAMA_ARG_MODEL")
      ->type_name("FILE")
      ->group(group);
  app.add_option("-a,--alias", config.alias, "name that clients see as the model")
      ->envname("LLAMA_ARG_ALIAS")
      ->type_name("NAME")
      ->group(group);
  add_choice(app, "--engine", config.engine, kEngines, "llama computes; sim answers in word salad without a model")
      ->envname("CHASQUI_ENGINE")
      ->default_str("llama")
      ->group(group);
  app.add_option("--gpu-layers", config.gpu_layers, "(-ngl) layers to keep on the GPU; -1: all that fit")
      ->envname("LLAMA_ARG_N_GPU_LAYERS")
      ->check(CLI::Range(-1, 100000))
      ->type_name("N")
      ->group(group);
  app.add_option("--chat-template-file", config.chat_template_file, "Jinja template instead of the model's own")
      ->envname("LLAMA_ARG_CHAT_TEMPLATE_FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("!--no-mmap", config.use_mmap, "read the file instead of mapping it")
      ->envname("LLAMA_ARG_NO_MMAP")
      ->group(group);
  app.add_flag("--mlock", config.use_mlock, "keep the weights from being swapped out")
      ->envname("LLAMA_ARG_MLOCK")
      ->group(group);
}

void add_context_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Context and speed";
  ModelConfig& model = config.model;
  app.add_option("--workers", config.workers,
                 "contexts that share the model, each with its part of slots, cells and cores: see docs/workers.md")
      ->envname("CHASQUI_WORKERS")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("-c,--ctx-size", model.cells, "KV cells of all slots together; 0: chosen from the model")
      ->envname("LLAMA_ARG_CTX_SIZE")
      ->check(CLI::Range(0, 1 << 28))
      ->type_name("N")
      ->group(group);
  app.add_option("--parallel", model.slots, "(-np) sequences at once, 1 to 256; 0: chosen from the model")
      ->envname("LLAMA_ARG_N_PARALLEL")
      ->check(CLI::Range(0, 256))
      ->type_name("N")
      ->group(group);
  app.add_option("-b,--batch-size", model.rows_max, "rows of one batch")
      ->envname("LLAMA_ARG_BATCH")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N")
      ->group(group);
  app.add_option("--ubatch-size", model.rows_max, "(-ub) the same: a batch is computed in one piece")
      ->envname("LLAMA_ARG_UBATCH")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N")
      ->group(group);
  app.add_option("-t,--threads", model.threads,
                 "compute threads of each worker for one row; 0: its part of the cores, one alone for tiny models")
      ->envname("LLAMA_ARG_THREADS")
      ->check(CLI::Range(0, 512))
      ->type_name("N")
      ->group(group);
  app.add_option("--threads-batch", model.threads_batch, "(-tb) compute threads for more rows; 0: as --threads")
      ->envname("LLAMA_ARG_THREADS_BATCH")
      ->check(CLI::Range(0, 512))
      ->type_name("N")
      ->group(group);
  app.add_option("--poll", model.polling, "how long idle compute threads spin, 0 to 100")
      ->envname("LLAMA_ARG_POLL")
      ->check(CLI::Range(0, 100))
      ->type_name("N")
      ->group(group);
  add_choice(app, "--flash-attn", model.flash_attention, kFlashAttention, "(-fa) flash attention")
      ->envname("LLAMA_ARG_FLASH_ATTN")
      ->default_str("auto")
      ->group(group);
  add_choice(app, "--cache-type-k", model.kv_keys, kKvTypes, "(-ctk) format of the keys in the KV cache")
      ->envname("LLAMA_ARG_CACHE_TYPE_K")
      ->default_str("f16")
      ->group(group);
  add_choice(app, "--cache-type-v", model.kv_values, kKvTypes, "(-ctv) format of the values in the KV cache")
      ->envname("LLAMA_ARG_CACHE_TYPE_V")
      ->default_str("f16")
      ->group(group);
  app.add_flag("--kv-unified", model.unified, "(-kvu) one pool of cells for all slots instead of a stream each")
      ->envname("LLAMA_ARG_KV_UNIFIED")
      ->group(group);
  app.add_flag("!--fixed-threads", model.adapt_threads, "always use --threads, even while fewer would be faster")
      ->envname("CHASQUI_FIXED_THREADS")
      ->group(group);
  app.add_flag("!--no-warmup", model.warm_up, "do not compute once before the first request")
      ->envname("LLAMA_ARG_NO_WARMUP")
      ->group(group);
}

void add_cache_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Prefix cache";
  app.add_option("--cache-ram", config.cache_ram,
                 "MiB of host memory for prompts and answers that may come again, at most a quarter of what there is; "
                 "-1: no limit, 0: nothing is kept")
      ->envname("LLAMA_ARG_CACHE_RAM")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 30))
      ->type_name("MIB")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--cache-prompt,!--no-cache-prompt", config.cache_prompt,
               "whether requests that do not say use the cache; they do by default")
      ->envname("LLAMA_ARG_CACHE_PROMPT")
      ->group(group);
  app.add_flag("--cache-shared", config.cache_shared,
               "tenants share what is cached; by its speed each can tell what others have asked")
      ->envname("CHASQUI_CACHE_SHARED")
      ->group(group);
}

void add_session_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Sessions";
  add_seconds(app, "--session-ttl", config.session_ttl, "how long a session that nobody uses is kept")
      ->envname("CHASQUI_SESSION_TTL")
      ->check(CLI::Range(1.0, 86400.0))
      ->default_str("3600")
      ->group(group);
  app.add_option("--sessions-max", config.sessions_max, "sessions that may be open at once")
      ->envname("CHASQUI_SESSIONS_MAX")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--tenant-sessions", config.tenant_sessions,
                 "sessions of one tenant; 0: no limit; without keys there is none unless set")
      ->envname("CHASQUI_TENANT_SESSIONS")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N")
      ->default_str("a quarter of --sessions-max")
      ->group(group);
}

void add_limit_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Limits";
  app.add_option("-n,--predict", config.predict, "tokens of an answer when a request does not say; -1: no limit")
      ->envname("LLAMA_ARG_N_PREDICT")
      ->check(CLI::Range(-1, 1 << 30))
      ->type_name("N")
      ->group(group);
  app.add_option("--queue-requests", config.queue_requests, "requests that may wait for a slot")
      ->envname("CHASQUI_QUEUE_REQUESTS")
      ->check(CLI::Range(0, 100000))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--queue-tokens", config.queue_tokens, "prompt tokens that may wait; 0: 16 for each KV cell")
      ->envname("CHASQUI_QUEUE_TOKENS")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  add_waits(app, config)->envname("CHASQUI_QUEUE_WAIT")->default_str("as --ttft-target")->group(group);
  app.add_option("--tenant-requests", config.tenant_requests,
                 "requests in flight of one tenant; 0: no limit; without keys there is none unless set")
      ->envname("CHASQUI_TENANT_REQUESTS")
      ->check(CLI::Range(0, 100000))
      ->type_name("N")
      ->default_str("64")
      ->group(group);
  add_seconds(app, "--request-timeout", config.request_timeout, "time for a whole request; 0: none")
      ->envname("CHASQUI_REQUEST_TIMEOUT")
      ->default_str("0")
      ->group(group);
  add_seconds(app, "--timeout", config.write_timeout, "(-to) how long a client may take no byte of its answer")
      ->envname("LLAMA_ARG_TIMEOUT")
      ->default_str("30")
      ->group(group);
  add_seconds(app, "--drain-time", config.drain_time, "how long running requests may go on after SIGTERM")
      ->envname("CHASQUI_DRAIN_TIME")
      ->default_str("30")
      ->group(group);
}

// One number of milliseconds for each class, most urgent first.
CLI::Option* add_class_times(CLI::App& app, const std::string& name, SchedulerTargets& targets,
                             Duration ClassTarget::*time, const std::string& help) {
  std::string standing;
  for (const ClassTarget& target : targets.of) {
    const auto ms = std::chrono::duration_cast<milliseconds>(target.*time).count();
    standing += (standing.empty() ? "" : ",") + std::to_string(ms);
  }
  return app
      .add_option_function<std::vector<std::int64_t>>(
          name,
          [&targets, time](const std::vector<std::int64_t>& times) {
            for (std::size_t c = 0; c < times.size(); ++c) targets.of[c].*time = milliseconds(times[c]);
          },
          help)
      ->delimiter(',')
      ->expected(static_cast<int>(kServiceClasses))
      ->check(CLI::Range(1, 3'600'000))
      ->type_name("MS,MS,MS")
      ->default_str(standing);
}

void add_scheduling_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Scheduling";
  add_class_times(app, "--ttft-target", config.targets, &ClassTarget::first_token,
                  "time to the first token that interactive, standard, background requests should see")
      ->envname("CHASQUI_TTFT_TARGET")
      ->group(group);
  add_class_times(app, "--itl-target", config.targets, &ClassTarget::next_token,
                  "time between tokens that they should see while others' prompts are read")
      ->envname("CHASQUI_ITL_TARGET")
      ->group(group);
  app.add_option_function<std::int64_t>(
         "--prefill-step", [&config](std::int64_t ms) { config.targets.prefill_step = milliseconds(ms); },
         "longest step that only reads prompts")
      ->envname("CHASQUI_PREFILL_STEP")
      ->check(CLI::Range(10, 60'000))
      ->type_name("MS")
      ->default_str("250")
      ->group(group);
  add_choice(app, "--policy", config.policy, kPolicies, "who goes first; fcfs (who came first) is for comparisons")
      ->envname("CHASQUI_POLICY")
      ->default_str("chasqui")
      ->group(group);
}

void add_log_options(CLI::App& app, ServeConfig& config) {
  const std::string group = "Operation";
  add_choice(app, "--log-level", config.log_level, kLogLevels, "least important lines to log")
      ->envname("CHASQUI_LOG_LEVEL")
      ->default_str("info")
      ->group(group);
  add_choice(app, "--log-format", config.log_format, kLogFormats, "format of log lines on standard error")
      ->envname("CHASQUI_LOG_FORMAT")
      ->default_str("text")
      ->group(group);
  add_choice(app, "--wakeup", config.wakeup, kWakeups, "how the worker wakes the loop; the best one by default")
      ->envname("CHASQUI_WAKEUP")
      ->default_str("eventfd")
      ->group(group);
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app{"Chasqui serves GGUF language models to many clients at once.", "chasqui"};
  app.set_version_flag("--version", std::string("chasqui ") + CHASQUI_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  ServeConfig config;
  config.model.slots = 0;
  CLI::App* serve = app.add_subcommand("serve", "Serve a model over HTTP; with no options the built-in demo model");
  BenchConfig bench_config;
  CLI::App* bench = add_bench_command(app, bench_config);
  CLI::App* version = app.add_subcommand("version", "Print the version");
  add_model_options(*serve, config);
  add_context_options(*serve, config);
  add_cache_options(*serve, config);
  add_session_options(*serve, config);
  add_folder_options(*serve, config);
  add_door_options(*serve, config);
  add_scheduling_options(*serve, config);
  add_limit_options(*serve, config);
  add_log_options(*serve, config);
  SimulateConfig simulation;
  CLI::App* simulate = add_simulate(app, simulation);

  std::vector<std::string> arguments = with_long_names(argc, argv);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return {std::nullopt, std::nullopt, code == 0 ? 0 : 2};
  }
  if (bench->parsed()) return {std::nullopt, bench_config, 0};
  if (simulate->parsed()) return {std::nullopt, std::nullopt, 0, simulation};
  if (version->parsed()) {
    std::printf("chasqui %s\n", CHASQUI_VERSION);
    return {std::nullopt, std::nullopt, 0};
  }
  if (config.host.ends_with(".sock") && config.unix_socket.empty()) config.unix_socket = std::exchange(config.host, "");
  return {config, std::nullopt, 0};
}

}  // namespace chasqui
