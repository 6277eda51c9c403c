#include "app/chat_command.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <chasqui_demo_model.h>

#include "app/backends.h"
#include "app/capacity.h"
#include "app/model_search.h"
#include "app/progress_bar.h"
#include "base/ascii.h"
#include "base/log.h"
#include "cli/chat.h"
#include "cli/frame_answerer.h"
#include "cli/local_answerer.h"
#include "cli/machine.h"
#include "cli/server_answerer.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

void add_answer_options(CLI::App& app, ChatConfig& config) {
  app.option_defaults()->group("Answers");
  app.add_option("-s,--system", config.system, "what the model is told before everything")
      ->envname("CHASQUI_CHAT_SYSTEM")
      ->type_name("TEXT");
  app.add_option("--temp,--temperature", config.temperature, "0: always the most likely token")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("T");
  app.add_option("-n,--max-tokens", config.max_tokens, "longest answer")->check(CLI::Range(1, 1 << 30))->type_name("N");
  app.add_option("--seed", config.seed, "of the dice")->type_name("N");
}

// Where the server is, if there is one. What was typed wins over what the environment says, whichever of them it is.
struct ServerPlace {
  std::string url, socket;
};

Result<ServerPlace> place_of(const ChatConfig& config) {
  const auto typed = [](const std::string& value, const char* variable) {
    const char* const standing = std::getenv(variable);
    return !value.empty() && (standing == nullptr || value != standing);
  };
  const bool url = typed(config.url, "CHASQUI_URL");
  const bool socket = typed(config.socket, "CHASQUI_CHAT_SOCKET");
  const bool unix_socket = !config.unix_socket.empty();
  if (url + socket + unix_socket > 1) {
    return invalid_field("--url", "--url, --unix-socket and --socket each name a server: give one of them");
  }
  if (unix_socket) return ServerPlace{"unix:" + config.unix_socket, ""};
  if (socket || (!url && config.url.empty())) return ServerPlace{"", config.socket};
  return ServerPlace{config.url, ""};
}

// A path, or a name with its user or its tag. "Why?" and "Translate:" are none.
bool looks_like_model(const std::string& word) {
  if (word.find_first_of(" \t\n") != std::string::npos || word.ends_with(':')) return false;
  if (word.ends_with(".gguf")) return true;
  const bool plain = std::ranges::all_of(word, [](char c) { return is_ascii_word_or("_-.:/@", c); });
  return plain && word.find_first_of(":/") != std::string::npos;
}

// Takes the model off the question. Error: its first word looks like one and is none.
Result<void> take_model(ChatConfig& config) {
  if (!config.names_model || !config.model.empty() || config.question.empty()) return {};
  const std::string word = config.question.front();
  const bool one_word = word.find_first_of(" \t\n") == std::string::npos;
  if (names_file(word) || (one_word && is_model_name(word) && cli::find_model(folders_of_models(), word))) {
    config.model = word;
    config.question.erase(config.question.begin());
    return {};
  }
  if (!looks_like_model(word)) return {};
  return invalid_field("", word +
                               ": there is neither a model of this name here nor such a file; `chasqui list` shows the "
                               "models that are here, `chasqui pull USER/REPO` downloads one of Hugging Face, `chasqui "
                               "chat` takes the word for a question");
}

Result<cli::AnswererPtr> open_model(const ChatConfig& config, const cli::AnswerSettings& settings) {
  LoadOptions options;
  options.weights.gpu_layers = config.gpu_layers;
  ProgressBar bar("loading the model", ProgressBar::End::goes, false);
  options.weights.progress = [&bar](double share) { return bar.show(share); };
  const auto file = file_of_model(config.model);
  if (!file) return file.error();
  const std::uint64_t free_bytes = cli::look_at_machine().free_bytes();
  backends();
  auto model = file->empty() ? load_llama(demo_model(), "chasqui-demo", options) : load_llama(*file, options);
  bar.done();
  if (!model) return model.error();
  SessionEngineConfig engine;
  engine.model.slots = 1;
  engine.model.cells = config.context;
  engine.model.threads = config.threads;
  const std::uint64_t kv_bytes = kv_bytes_for(free_bytes, model->info.size_bytes, offloads_to_gpu());
  engine.model = with_capacity(engine.model, model->info, kv_bytes);
  return cli::open_local(std::move(*model), std::move(engine), settings);
}

}  // namespace

CLI::App* add_chat_command(CLI::App& app, ChatConfig& config) {
  CLI::App* chat = app.add_subcommand("chat", "Talk to a model at the terminal: a server's, or one in this process");
  chat->option_defaults()->group("Who answers");
  chat->add_option("--url", config.url, "a running server, http://host:port or unix:path")
      ->envname("CHASQUI_URL")
      ->type_name("URL");
  chat->add_option("--unix-socket", config.unix_socket, "a running server that speaks HTTP on this Unix socket")
      ->type_name("PATH");
  chat->add_option("--socket", config.socket, "a running server that speaks frames on this Unix socket (its --socket)")
      ->envname("CHASQUI_CHAT_SOCKET")
      ->type_name("PATH");
  chat->add_option("--api-key", config.api_key, "the server's key")->envname("CHASQUI_API_KEY")->type_name("KEY");
  chat->add_option("-m,--model", config.model,
                   "GGUF file, or a name that `chasqui list` shows; without a server and this the built-in demo model")
      ->type_name("FILE|NAME");
  chat->add_option("--gpu-layers", config.gpu_layers, "(-ngl) layers to keep on the GPU; -1: all that fit")
      ->envname("LLAMA_ARG_N_GPU_LAYERS")
      ->check(CLI::Range(-1, 100000))
      ->type_name("N");
  chat->add_option("-c,--ctx-size", config.context, "tokens of a conversation; 0: chosen from the model")
      ->check(CLI::Range(0, 1 << 28))
      ->type_name("N");
  chat->add_option("-t,--threads", config.threads, "compute threads; 0: one for each core")
      ->envname("LLAMA_ARG_THREADS")
      ->check(CLI::Range(0, 512))
      ->type_name("N");
  add_answer_options(*chat, config);
  chat->add_option("--history", config.history, "file of what was typed, for the arrow keys")
      ->envname("CHASQUI_CHAT_HISTORY")
      ->type_name("FILE")
      ->default_str("~/.local/state/chasqui/chat_history")
      ->group("Options");
  chat->add_flag("--no-history", config.no_history, "keep nothing of what was typed")->group("Options");
  chat->add_flag("--plain", config.plain, "show Markdown as the model writes it; so it is in pipes")->group("Options");
  chat->add_option("question", config.question,
                   "one question: prints the answer and ends; as does a pipe. The first word after `run` may be the "
                   "model instead of -m");
  return chat;
}

int run_chat(ChatConfig config) {
  configure_log(LogLevel::error, LogFormat::text);
  cli::AnswerSettings settings;
  settings.temperature = config.temperature;
  settings.max_tokens = config.max_tokens;
  settings.seed = config.seed;
  const auto place = place_of(config);
  if (!place) {
    std::fprintf(stderr, "chasqui chat: %s\n", place.error().message.c_str());
    return 2;
  }
  const bool here = place->socket.empty() && place->url.empty();
  if (const auto taken = here ? take_model(config) : Result<void>(); !taken) {
    std::fprintf(stderr, "chasqui run: %s\n", taken.error().message.c_str());
    return 1;
  }
  auto answerer = !place->socket.empty() ? cli::open_frames(place->socket, settings)
                  : place->url.empty()   ? open_model(config, settings)
                                         : cli::open_server(place->url, config.api_key, config.model, settings);
  if (!answerer) {
    std::fprintf(stderr, "chasqui chat: %s\n", answerer.error().message.c_str());
    return 1;
  }
  cli::ChatOptions options;
  options.system = config.system;
  options.plain = config.plain;
  for (const std::string& word : config.question) options.question += (options.question.empty() ? "" : " ") + word;
  if (!config.no_history) options.history_file = config.history.empty() ? cli::default_history_file() : config.history;
  return cli::chat(**answerer, options);
}

}  // namespace chasqui
