#include "app/bench_command.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "bench/report.h"
#include "bench/run.h"

namespace chasqui {
namespace {

constexpr const char* kLoadHelp =
    "a group of clients: name=W, clients=N or rate=R, requests=N, duration=S, prompt-words=N|LO-HI,\n"
    "shared-prefix-words=N, max-tokens=N|LO-HI|N*WEIGHT/…, priority=P, key=K, stream=0|1, start=S,\n"
    "abandon=PROBABILITY, retry=0|1, think=S, with commas; may be given several times";

void add_server_options(CLI::App& app, BenchConfig& config) {
  app.option_defaults()->group("Server");
  app.add_option("--url", config.url, "http://host:port or unix:path")->type_name("URL")->capture_default_str();
  app.add_option("--api", config.api, "which of the two APIs")
      ->check(CLI::IsMember({"chat", "completions"}).description(""))
      ->type_name("chat|completions")
      ->capture_default_str();
  app.add_option("--model", config.model, "sent as the model's name")->type_name("NAME");
  app.add_option("--api-key", config.api_key, "for groups without key=")->type_name("KEY");
  app.add_flag("--ignore-eos", config.ignore_eos, "ask for answers of full length");
  app.add_option("--fields", config.fields, "more fields of each request, '{\"temperature\":0}'")->type_name("JSON");
  app.add_option("--timeout", config.timeout_s, "for each request")
      ->check(CLI::Range(0.001, 86400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
}

void add_load_options(CLI::App& app, BenchConfig& config) {
  app.option_defaults()->group("Load");
  app.add_option("--load", config.loads, kLoadHelp)->allow_extra_args(false)->type_name("SPEC");
  app.add_option("--trace", config.trace_file, "requests of a file, one JSON object on each line (see docs/bench.md)")
      ->type_name("FILE");
  app.add_option("--warmup", config.warmup, "requests before, which do not count")
      ->check(CLI::Range(0, 100000))
      ->type_name("N");
  app.add_option("--seed", config.seed, "of prompts, lengths and arrivals")->type_name("N")->capture_default_str();
}

void add_report_options(CLI::App& app, BenchConfig& config) {
  app.option_defaults()->group("Measurement");
  app.add_option("--health-probes", config.health_hz, "GET /health so many times a second")
      ->check(CLI::Range(0.01, 1000.0))
      ->type_name("HZ");
  app.add_option("--pid", config.pid, "server's process, to read its CPU time, memory and threads")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->type_name("PID");
  app.add_option("--goodput", config.goodput, "limits of good service in ms, ttft:1000,itl:200; also tpot and e2e")
      ->type_name("LIMITS");
  app.add_option("--json", config.json_file, "write the figures there; -: to standard output instead of the text")
      ->type_name("FILE");
  app.add_flag("--no-progress", config.no_progress, "no progress line on the terminal");
}

// The members of a JSON object without its braces.
Result<std::string> read_fields(const std::string& text) {
  if (text.empty()) return std::string();
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  if (error || !value.is_object()) return invalid_field("fields", "--fields: must be a JSON object");
  const std::string object = boost::json::serialize(value);
  return object.substr(1, object.size() - 2);
}

Result<void> read_loads(const BenchConfig& config, bench::RunConfig& run) {
  for (const std::string& text : config.loads) {
    auto load = bench::parse_load(text, run.loads.size() + 1);
    if (!load) return load.error();
    for (const bench::LoadSpec& other : run.loads) {
      if (other.name == load->name) return invalid_field("load", "--load: two groups have the name " + load->name);
    }
    run.loads.push_back(std::move(*load));
  }
  if (!config.trace_file.empty()) {
    std::ifstream file(config.trace_file);
    if (!file) return invalid_field("trace", "--trace: cannot read " + config.trace_file);
    std::ostringstream text;
    text << file.rdbuf();
    auto trace = bench::parse_trace(text.str());
    if (!trace) return trace.error();
    run.trace = std::move(*trace);
  }
  if (!run.loads.empty() || !run.trace.empty()) return {};
  return invalid_field("load", "say what to send, with --load or --trace");
}

Result<bench::RunConfig> read_config(const BenchConfig& config) {
  bench::RunConfig run;
  auto target = bench::parse_target(config.url);
  if (!target) return target.error();
  run.target = std::move(*target);
  auto fields = read_fields(config.fields);
  if (!fields) return fields.error();
  run.shape.fields = std::move(*fields);
  run.shape.api = config.api == "chat" ? bench::Api::chat : bench::Api::completions;
  run.shape.model = config.model;
  run.shape.key = config.api_key;
  run.shape.ignore_eos = config.ignore_eos;
  if (auto loads = read_loads(config, run); !loads) return loads.error();
  if (!config.goodput.empty()) {
    auto goodput = bench::parse_goodput(config.goodput);
    if (!goodput) return goodput.error();
    run.goodput = *goodput;
  }
  run.warmup = config.warmup;
  run.health_hz = config.health_hz;
  run.pid = config.pid;
  run.seed = config.seed;
  run.timeout = from_seconds(config.timeout_s);
  return run;
}

void print_progress(const bench::Progress& progress) {
  constexpr int kWidth = 24;
  std::string bar;
  if (progress.expected > 0) {
    const auto full = static_cast<int>(progress.finished * kWidth / progress.expected);
    bar = "[" + std::string(static_cast<std::size_t>(full), '#');
    bar += std::string(static_cast<std::size_t>(kWidth - full), '.') + "] ";
  }
  std::fprintf(stderr, "\r%s%lld done, %lld running, %lld tokens, %.0f s \033[K", bar.c_str(),
               static_cast<long long>(progress.finished), static_cast<long long>(progress.running),
               static_cast<long long>(progress.tokens), progress.elapsed_s);
}

int usage_error(const Error& error) {
  std::fprintf(stderr, "chasqui bench: %s\n", error.message.c_str());
  return 2;
}

}  // namespace

CLI::App* add_bench_command(CLI::App& app, BenchConfig& config) {
  CLI::App* command = app.add_subcommand("bench", "Put a load on an OpenAI-compatible server and measure its answers");
  add_server_options(*command, config);
  add_load_options(*command, config);
  add_report_options(*command, config);
  return command;
}

int run_bench(const BenchConfig& config) {
  const Result<bench::RunConfig> run_config = read_config(config);
  if (!run_config) return usage_error(run_config.error());
  std::FILE* json = nullptr;
  if (!config.json_file.empty() && config.json_file != "-") {
    json = std::fopen(config.json_file.c_str(), "w");  // before the load, which may take long
    if (json == nullptr) return usage_error(invalid_field("json", "--json: cannot write " + config.json_file));
  }
  const bool shows_progress = !config.no_progress && isatty(STDERR_FILENO) == 1;
  std::function<void(const bench::Progress&)> on_progress;
  if (shows_progress) on_progress = print_progress;
  const Result<bench::RunReport> report = bench::run(*run_config, on_progress);
  if (shows_progress) std::fprintf(stderr, "\r\033[K");
  if (!report) {
    if (json != nullptr) std::fclose(json);
    return usage_error(report.error());
  }
  if (json != nullptr) {
    std::fputs(bench::report_json(*report).c_str(), json);
    std::fclose(json);
  }
  const bool only_json = config.json_file == "-";
  std::fputs(only_json ? bench::report_json(*report).c_str() : bench::report_text(*report).c_str(), stdout);
  return report->total.ok > 0 ? 0 : 1;
}

}  // namespace chasqui
