// What `chasqui serve` was asked to do: flags, then environment, then defaults. Flags and LLAMA_ARG_* variables are
// llama-server's for everything that both servers have. A plain value, constant after start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/wakeup.h"
#include "model/model_config.h"

namespace chasqui {

enum class EngineKind { llama, sim };

struct ServeConfig {
  EngineKind engine = EngineKind::llama;
  std::string model_path;  // empty: the built-in demo model
  std::string alias;       // empty: the model's own name
  std::string chat_template_file;
  std::int32_t gpu_layers = -1;
  bool use_mmap = true;
  bool use_mlock = false;

  ModelConfig model;          // slots and cells may be 0: chosen from the model
  std::int64_t predict = -1;  // tokens of an answer when a request does not say

  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::string unix_socket;  // HTTP on this path as well
  std::vector<std::string> api_keys;
  bool no_auth = false;  // allows a public address without a key

  std::size_t waiting_max = 512;
  Duration request_timeout{};  // zero: none
  Duration write_timeout = seconds(30);
  Duration drain_time = seconds(30);
  Wakeup::Kind wakeup = Wakeup::Kind::eventfd;

  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
};

// What the command line says: what to run, or an exit code after help, version or a usage error (already printed).
struct CommandLine {
  std::optional<ServeConfig> serve;
  int exit_code = 0;
};

CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace chasqui
