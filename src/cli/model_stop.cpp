#include "cli/model_stop.h"

#include "base/json_writer.h"
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
  auto http = HttpClient::open(options.url, options.api_key);
  if (!http) return refuse(http.error().message);
  HttpCall call;
  call.method = "POST";
  call.path = "/models/unload";
  call.body = "{\"model\":";
  append_json_string(call.body, options.model);
  call.body += '}';
  call.timeout = kStopPatience;
  const auto answer = (*http)->call(call);
  if (!answer) return refuse(answer.error().message);
  if (answer->status != 200) return refuse(message_of(*answer));
  write_out(harmless(options.model) + " is unloaded when its running requests have ended\n");
  return 0;
}

}  // namespace chasqui::cli
