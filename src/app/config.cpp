#include "app/config.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>

#include "app/chat_command.h"
#include "app/completion.h"
#include "app/config_file.h"
#include "app/door_options.h"
#include "app/folder_options.h"
#include "app/inspect_command.h"
#include "app/limits_document.h"
#include "app/metrics_document.h"
#include "app/option_kinds.h"
#include "app/scheduling_options.h"
#include "app/watching_options.h"
#include "cli/top.h"

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
const std::map<std::string, LogLevel> kLogLevels = {{"debug", LogLevel::debug},
                                                    {"info", LogLevel::info},
                                                    {"warning", LogLevel::warning},
                                                    {"error", LogLevel::error},
                                                    {"off", LogLevel::off}};
const std::map<std::string, LogFormat> kLogFormats = {{"text", LogFormat::text}, {"json", LogFormat::json}};

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
  add_off_flag(app, "--no-mmap", config.use_mmap, "read the file instead of mapping it")
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
  add_off_flag(app, "--fixed-threads", model.adapt_threads, "always use --threads, even while fewer would be faster")
      ->envname("CHASQUI_FIXED_THREADS")
      ->group(group);
  add_off_flag(app, "--no-warmup", model.warm_up, "do not compute once before the first request")
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
      ->default_str("true")
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

void add_serve_options(CLI::App& app, ServeConfig& config) {
  config.model.slots = 0;
  add_model_options(app, config);
  add_context_options(app, config);
  add_cache_options(app, config);
  add_adapter_options(app, config.adapters);
  add_session_options(app, config);
  add_folder_options(app, config);
  add_door_options(app, config);
  add_scheduling_options(app, config);
  add_limit_options(app, config);
  add_log_options(app, config);
  add_watching_options(app, config);
  add_operation_options(app, config.operation);
  // What is not written into the help of its own accord.
  for (CLI::Option* option : app.get_options()) {
    if (option->get_default_str().empty()) option->capture_default_str();
  }
  app.add_option("--config", "TOML file with any of these settings; environment and flags are stronger")
      ->envname("CHASQUI_CONFIG")
      ->type_name("FILE")
      ->group("Operation");
}

void add_top_options(CLI::App& app, cli::TopOptions& options, double& interval_s) {
  options.url = "http://127.0.0.1:8080";
  app.add_option("--url", options.url, "http://host:port or unix:path")
      ->envname("CHASQUI_URL")
      ->type_name("URL")
      ->capture_default_str();
  app.add_option("--api-key", options.api_key, "the server's key")->envname("CHASQUI_API_KEY")->type_name("KEY");
  app.add_option("-i,--interval", interval_s, "between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--once", options.once, "one picture, and out; so it is where there is no terminal");
}

// All commands and what they fill in. Built twice: once to see where each setting comes from.
struct Commands {
  Commands() {
    app.set_version_flag("--version", std::string("chasqui ") + CHASQUI_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    add_serve_options(*serve, config);
    add_serve_options(*doctor, doctor_config);
    add_serve_options(*show, show_config);
    for (CLI::App* command : {doctor, show, inspect}) command->add_flag("--json", json, "for programs");
    show->add_flag("--limits", limits, "the limits instead: what they are, what happens there, what shows it");
    inspect_config.model.slots = 0;
    inspect->add_option("model", inspect_config.model_path, "GGUF file; without it the built-in demo model")
        ->type_name("FILE");
    add_context_options(*inspect, inspect_config);
    add_top_options(*top, top_options, top_interval_s);
    completion->add_option("shell", shell, "to be read by the shell: source <(chasqui completion bash)")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
        ->type_name("bash|zsh|fish");
  }

  CLI::App app{"Chasqui serves GGUF language models to many clients at once.", "chasqui"};
  // One for each, since the environment is read into all of them.
  ServeConfig config, doctor_config, show_config, inspect_config;
  BenchConfig bench_config;
  SimulateConfig simulation;
  ChatConfig chat_config;
  cli::TopOptions top_options;
  double top_interval_s = 1;
  bool json = false;
  bool limits = false;
  std::string shell;
  CLI::App* serve = app.add_subcommand("serve", "Serve a model over HTTP; with no options the built-in demo model");
  CLI::App* chat = add_chat_command(app, chat_config);
  CLI::App* inspect = app.add_subcommand("inspect", "What a model is, what it needs, and whether it fits here");
  CLI::App* doctor = app.add_subcommand("doctor", "Find what stands in the way of serve with the same flags");
  CLI::App* show = app.add_subcommand("config", "Print all settings of serve, and where each of them comes from");
  CLI::App* top = app.add_subcommand("top", "Watch a running server: what it does, how fast, who waits");
  CLI::App* bench = add_bench_command(app, bench_config);
  CLI::App* simulate = add_simulate(app, simulation);
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes commands and flags");
  CLI::App* metrics = app.add_subcommand("metrics", "Print what GET /metrics shows, as docs/metrics.md");
  CLI::App* version = app.add_subcommand("version", "Print the version");
};

// Which of the commands that know --config this is, if any.
CLI::App* configured(Commands& commands, const std::vector<std::string>& arguments) {
  for (CLI::App* command : {commands.serve, commands.doctor, commands.show}) {
    if (!arguments.empty() && arguments.front() == command->get_name()) return command;
  }
  return nullptr;
}

// Seen is what was parsed; the exit code of what has nothing more to do.
CommandLine chosen(Commands& seen, const Settings& settings) {
  if (seen.bench->parsed()) return {std::nullopt, seen.bench_config, 0};
  if (seen.simulate->parsed()) return {std::nullopt, std::nullopt, 0, seen.simulation};
  const auto run = [](std::function<int()> command) {
    return CommandLine{std::nullopt, std::nullopt, 0, {}, std::move(command)};
  };
  if (seen.chat->parsed()) return run([config = seen.chat_config] { return run_chat(config); });
  if (seen.inspect->parsed()) return run([c = seen.inspect_config, json = seen.json] { return run_inspect(c, json); });
  if (seen.doctor->parsed()) return run([c = seen.doctor_config, json = seen.json] { return run_doctor(c, json); });
  if (seen.metrics->parsed()) return run([] { return print_metrics_document(); });
  if (seen.top->parsed()) {
    seen.top_options.interval =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seen.top_interval_s));
    return run([options = seen.top_options] { return cli::top(options); });
  }
  std::string said;
  if (seen.version->parsed()) said = std::string("chasqui ") + CHASQUI_VERSION + '\n';
  if (seen.completion->parsed()) said = completion_script(seen.app, seen.shell);
  if (seen.show->parsed()) {
    const auto print =
        seen.limits ? (seen.json ? limits_json : limits_document) : (seen.json ? settings_json : settings_text);
    said = print(*seen.show, settings);
  }
  if (said.empty()) return {seen.config, std::nullopt, 0};
  std::fwrite(said.data(), 1, said.size(), stdout);
  return {std::nullopt, std::nullopt, 0};
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  Settings settings;
  settings.arguments = with_long_names(argc, argv);
  Commands first;
  if (CLI::App* command = configured(first, settings.arguments)) {
    auto read = read_settings(first.app, *command, settings.arguments);
    if (!read) {
      std::fprintf(stderr, "chasqui: %s\n", read.error().message.c_str());
      return {std::nullopt, std::nullopt, 2};
    }
    settings = std::move(*read);
  }
  Commands seen;
  std::vector<std::string> arguments = settings.arguments;
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    seen.app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    const int code = seen.app.exit(error);
    return {std::nullopt, std::nullopt, code == 0 ? 0 : 2};
  }
  for (ServeConfig* config : {&seen.config, &seen.doctor_config}) {
    if (!config->host.ends_with(".sock") || !config->unix_socket.empty()) continue;
    config->unix_socket = std::exchange(config->host, "");
  }
  return chosen(seen, settings);
}

}  // namespace chasqui
