#include "app/model_commands.h"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "app/config.h"
#include "app/inspect_command.h"
#include "app/model_search.h"
#include "cli/terminal.h"

namespace chasqui {
namespace {

CLI::Option* add_model(CLI::App& app, std::string& model, const char* says) {
  return app.add_option("model", model, says)->required()->type_name("MODEL");
}

int inspect_file(const cli::ModelCardOptions& options) {
  ServeConfig config;
  config.model.slots = 0;  // as the model has it
  config.model_path = options.model;
  return run_inspect(config, options.json);
}

}  // namespace

void add_server_address(CLI::App& app, std::string& url, std::string& api_key) {
  url = "http://127.0.0.1:8080";
  app.add_option("--url", url, "http://host:port or unix:path")
      ->envname("CHASQUI_URL")
      ->type_name("URL")
      ->capture_default_str();
  app.add_option("--api-key", api_key, "the server's key")->envname("CHASQUI_API_KEY")->type_name("KEY");
}

CLI::App* add_ps_command(CLI::App& app, cli::ServedListOptions& options) {
  CLI::App* ps = app.add_subcommand("ps", "Models of a running server: loaded, being loaded, and until when");
  add_server_address(*ps, options.url, options.api_key);
  ps->add_flag("-a,--all", options.all, "models that are not loaded, too");
  ps->add_flag("--json", options.json, "for programs: as GET /v1/models has them");
  return ps;
}

CLI::App* add_show_command(CLI::App& app, cli::ModelCardOptions& options) {
  CLI::App* show = app.add_subcommand(
      "show", "What a model of a running server is; of a file, or without a server, what inspect says");
  add_model(*show, options.model, "its name, as ps --all shows it, or list; or a GGUF file");
  add_server_address(*show, options.url, options.api_key);
  show->add_flag("--json", options.json, "for programs: as POST /api/show has it");
  return show;
}

CLI::App* add_stop_command(CLI::App& app, cli::ModelStopOptions& options) {
  CLI::App* stop =
      app.add_subcommand("stop", "Unload a model of a running server, which loads it again when it is asked");
  add_model(*stop, options.model, "its name, as ps shows it");
  add_server_address(*stop, options.url, options.api_key);
  return stop;
}

int run_show(const cli::ModelCardOptions& options, bool has_address) {
  if (names_file(options.model)) return inspect_file(options);
  const auto card = cli::ask_for_card(options);
  if (card) {
    cli::write_out(*card);
    return 0;
  }
  std::string why = card.error().message;
  const bool unanswered = card.error().code == ErrorCode::unavailable;
  if (unanswered && !has_address && is_model_name(options.model)) {
    const auto file = file_of_model(options.model);
    why += file ? "; this is what its file says" : "; " + file.error().message;
    if (file) {
      std::fprintf(stderr, "chasqui show: %s\n", cli::harmless(why).c_str());
      return inspect_file(options);
    }
  }
  std::fprintf(stderr, "chasqui show: %s\n", cli::harmless(why).c_str());
  return 1;
}

}  // namespace chasqui
