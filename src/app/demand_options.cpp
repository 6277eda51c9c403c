#include "app/demand_options.h"

#include <CLI/CLI.hpp>

#include "app/model_memory.h"

namespace chasqui {

void add_demand_options(CLI::App& app, ServeConfig& config) {
  app.add_option("--models-max", config.models_max,
                 "models of --models-dir and --models-preset that are loaded at once; 0: no limit")
      ->envname("LLAMA_ARG_MODELS_MAX")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N");
  app.add_option_function<std::string>(
         "--models-memory", [&config](const std::string& text) { config.models_memory = read_bytes(text).value(); },
         "memory that models which are loaded may need together, as 24G; the one not used for the longest time leaves")
      ->check([](const std::string& text) {
        const auto bytes = read_bytes(text);
        return bytes ? std::string() : bytes.error().message;
      })
      ->type_name("BYTES")
      ->envname("CHASQUI_MODELS_MEMORY")
      ->default_str("three quarters of the machine's memory");
  app.add_flag("--models-autoload,!--no-models-autoload", config.models_autoload,
               "whether a request loads the model that it names; it does by default")
      ->default_str("true")
      ->envname("LLAMA_ARG_MODELS_AUTOLOAD");
  app.add_flag("--models-trial,!--no-models-trial", config.models_trial,
               "load each of them in a process of its own first, which a broken file may end; it does by default")
      ->default_str("true")
      ->envname("CHASQUI_MODELS_TRIAL");
}

}  // namespace chasqui
