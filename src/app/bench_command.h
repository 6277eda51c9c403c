// `chasqui bench`: the command line of the load generator, and what it prints. Runs in the calling thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace chasqui {

// What the command line says, as it was written; run_bench() checks what CLI11 cannot.
struct BenchConfig {
  std::string url = "http://127.0.0.1:8080";
  std::string api = "chat";
  std::string model;
  std::string api_key;
  std::string fields;  // a JSON object
  bool ignore_eos = false;
  std::vector<std::string> loads;
  std::string trace_file;
  std::int32_t warmup = 0;
  double health_hz = 0;
  std::int64_t pid = 0;
  std::string goodput;
  std::uint64_t seed = 1;
  double timeout_s = 300;
  std::string json_file;  // "-": standard output, instead of the text
  bool no_progress = false;
};

// Adds the subcommand, which fills `config`; both must outlive the parsing.
CLI::App* add_bench_command(CLI::App& app, BenchConfig& config);

// The process's exit code: 0 when the run was completed, 1 when nothing succeeded, 2 for what cannot be run.
int run_bench(const BenchConfig& config);

}  // namespace chasqui
