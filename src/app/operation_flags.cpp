#include "app/operation_flags.h"

#include <CLI/CLI.hpp>

namespace chasqui {

void add_operation_options(CLI::App& app, OperationFlags& flags) {
  const std::string group = "Operation";
  app.add_flag("--slots,!--no-slots", flags.show_slots, "GET /slots says who has which slot; it does by default")
      ->envname("LLAMA_ARG_ENDPOINT_SLOTS")
      ->group(group);
  app.add_option_function<double>(
         "--sleep-idle-seconds",
         [&flags](double s) {
           flags.sleep_after =
               s < 0 ? Duration::zero() : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
         },
         "free the model after so long without work, and load it again for the next request; -1: never")
      ->envname("LLAMA_ARG_SLEEP_IDLE_SECONDS")
      ->check([](const std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value)) return "must be a number of seconds";
        return value == -1 || (value >= 0.1 && value <= 86400 * 365) ? "" : "must be -1, or between 0.1 and a year";
      })
      ->type_name("SECONDS")
      ->default_str("-1")
      ->group(group);
}

}  // namespace chasqui
