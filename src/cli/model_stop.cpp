#include "cli/model_stop.h"

#include "cli/http_client.h"
#include "cli/terminal.h"

namespace chasqui::cli {
namespace {

constexpr Duration kStopPatience = seconds(10);

int refuse(const std::string& why) {
  write_error("chasqui stop: " + harmless(why) + '\n');
  return 1;
}

}  // namespace

int stop_model(const ModelStopOptions& options) {
  const auto answer = ask_about_model(options.url, options.api_key, "/models/unload", options.model, kStopPatience);
  if (!answer) return refuse(answer.error().message);
  write_out(harmless(options.model) + " is unloaded when its running requests have ended\n");
  return 0;
}

}  // namespace chasqui::cli
