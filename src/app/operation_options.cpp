#include "app/operation_options.h"

#include <CLI/CLI.hpp>

#include "app/option_kinds.h"

namespace chasqui {

void add_operation_options(CLI::App& app, OperationFlags& flags) {
  app.option_defaults()->group("Operation");
  app.add_flag("--slots,!--no-slots", flags.show_slots, "GET /slots says who has which slot; it does by default")
      ->envname("LLAMA_ARG_ENDPOINT_SLOTS");
  app.add_option_function<double>(
         "--sleep-idle-seconds",
         [&flags](double s) {
           flags.sleep_after =
               s < 0 ? Duration::zero() : from_seconds(s);
         },
         "free the model after so long without work, and load it again for the next request; -1: never")
      ->envname("LLAMA_ARG_SLEEP_IDLE_SECONDS")
      ->check([](const std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value)) return "must be a number of seconds";
        return value == -1 || (value >= 0.1 && value <= 86400 * 365) ? "" : "must be -1, or between 0.1 and a year";
      })
      ->type_name("SECONDS")
      ->default_str("-1");
  add_seconds(app, "--stuck-after", flags.stuck_after,
              "a step that takes longer is a hang: /health is 503, and the requests of that worker get an error")
      ->envname("CHASQUI_STUCK_AFTER")
      ->check(CLI::Range(0.1, 86400.0))
      ->default_str("30");
  add_seconds(
      app, "--drain-delay", flags.drain_delay,
      "after SIGTERM the listeners stay open for so long, /ready is 503 and new work is refused with 503, so that "
      "load balancers notice")
      ->envname("CHASQUI_DRAIN_DELAY")
      ->default_str("0");
  app.add_flag("--supervise", flags.supervise,
               "keep the listening sockets in a process that starts the server again when it dies: see "
               "docs/operation.md")
      ->envname("CHASQUI_SUPERVISE");
}

}  // namespace chasqui
