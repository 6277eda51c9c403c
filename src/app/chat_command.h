// `chasqui chat`: its command line, and who answers. Runs in the calling thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace chasqui {

struct ChatConfig {
  std::string url;          // empty: a model in this process
  std::string unix_socket;  // … or HTTP on that socket
  std::string socket;       // … or frames on that one
  std::string api_key;
  std::string model;  // file; of a server: the name of one of its models
  std::int32_t gpu_layers = -1;
  std::int32_t context = 0;  // cells; 0: chosen from the model
  std::int32_t threads = 0;
  std::string system;
  std::optional<double> temperature;
  std::optional<std::int64_t> max_tokens;
  std::optional<std::uint32_t> seed;
  std::string history;
  bool no_history = false;
  bool plain = false;
  std::vector<std::string> question;
  bool names_model = false;  // as Ollama's `run`: the first word of the question may be the model
};

// Adds the subcommand, which fills `config`; both must outlive the parsing.
CLI::App* add_chat_command(CLI::App& app, ChatConfig& config);

int run_chat(ChatConfig config);

}  // namespace chasqui
