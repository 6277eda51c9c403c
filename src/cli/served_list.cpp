#include "cli/served_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/json.hpp>

#include "cli/http_client.h"
#include "cli/json_parts.h"
#include "cli/machine.h"
#include "cli/terminal.h"
#include "cli/text_table.h"

namespace chasqui::cli {
namespace {

namespace json = boost::json;

constexpr Duration kListPatience = seconds(5);

std::string time_in_words(double seconds) {
  const auto rounded = [](double value) { return std::to_string(static_cast<long long>(std::ceil(value))); };
  if (seconds < 100) return rounded(seconds) + " s";
  return seconds < 6000 ? rounded(seconds / 60) + " min" : rounded(seconds / 3600) + " h";
}

std::string state_in_words(const json::object& status) {
  if (status.contains("failed")) return "failed: " + text_at(status, "reason");
  const std::string state = text_at(status, "value");
  if (state != "loading") return state;
  return state + ' ' + std::to_string(std::lround(100 * number_at(status, "progress", 0))) + " %";
}

std::string leaving(const json::object& status) {
  const std::string state = text_at(status, "value");
  if (state == "draining") return "when its requests end";
  if (state != "loaded") return "";
  if (const double left = number_at(status, "unloads_in_s", -1); left >= 0) return "in " + time_in_words(left);
  return status.contains("stays") ? "never" : "for others";
}

std::uint64_t bytes_of(const json::object& model) {
  const json::object* meta = object_at(model, "meta");
  const double weights = meta != nullptr ? number_at(*meta, "size", 0) : 0;
  return static_cast<std::uint64_t>(std::max(0.0, number_at(model, "memory_bytes", weights)));
}

int fail(const std::string& why) {
  write_error("chasqui ps: " + harmless(why) + '\n');
  return 1;
}

}  // namespace

Result<std::vector<ServedLine>> served_lines(const std::string& body, bool all) {
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  const json::value* list = !error && value.is_object() ? value.get_object().if_contains("data") : nullptr;
  if (list == nullptr || !list->is_array()) {
    return Error{ErrorCode::unavailable, "the server's list of models is of another form", ""};
  }
  std::vector<ServedLine> out;
  for (const json::value& each : list->get_array()) {
    if (!each.is_object()) continue;
    const json::object& model = each.get_object();
    const json::object* status = object_at(model, "status");
    if (status == nullptr) continue;  // an adapter, or not Chasqui
    if (!all && text_at(*status, "value") == "unloaded") continue;
    out.push_back({text_at(model, "id"), state_in_words(*status), bytes_of(model), leaving(*status)});
  }
  return out;
}

int print_served(const ServedListOptions& options) {
  auto http = HttpClient::open(options.url, options.api_key);
  if (!http) return fail(http.error().message);
  HttpCall call;
  call.path = "/v1/models";
  call.timeout = kListPatience;
  const auto answer = (*http)->call(call);
  if (!answer) return fail(answer.error().message);
  if (answer->status != 200) return fail(message_of(*answer));
  if (options.json) {
    write_out(answer->body + '\n');
    return 0;
  }
  const auto lines = served_lines(answer->body, options.all);
  if (!lines) return fail(lines.error().message);
  std::vector<std::vector<std::string>> rows = {{"NAME", "STATE", "MEMORY", "LEAVES"}};
  for (const ServedLine& line : *lines) {
    rows.push_back({harmless(line.name), harmless(line.state), line.bytes > 0 ? bytes_in_words(line.bytes) : "",
                    line.leaves});
  }
  write_out(text_table(std::move(rows)));
  return 0;
}

}  // namespace chasqui::cli
