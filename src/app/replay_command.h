// `chasqui replay`: has a recording of `serve --record` planned again, and says whether the plans are the same; or
// makes a load of it. The calling thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace chasqui {

struct ReplayConfig {
  std::string file;
  std::string steps;                    // file for the steps, for the page's view of the batch; empty: none
  std::string trace;                    // file for the load, for `chasqui bench`, in place of a replay; empty: none
  std::optional<std::uint32_t> worker;  // none: all
  std::string model;                    // empty: all
  bool about = false;                   // what the recording says of its models
};

// Adds the subcommand, which fills `config`; both must outlive the parsing.
CLI::App* add_replay_command(CLI::App& app, ReplayConfig& config);

// 0: all plans are the same, or the trace was written; 1: not, and the first difference is told; 2: the file cannot be
// read, or the trace not written.
int run_replay(const ReplayConfig& config);

}  // namespace chasqui
