#include "cli/top.h"

#include <algorithm>

#include <boost/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "cli/http_client.h"
#include "cli/json_parts.h"
#include "cli/top_view.h"

namespace chasqui::cli {
namespace {

constexpr Duration kAnswerWithin = seconds(5);

void draw(const TopView& view, const Paint& paint) {
  std::string out = "\x1b[H";
  const std::vector<std::string> lines = view.lines(terminal_size(STDOUT_FILENO), paint);
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  write_out(out + "\x1b[J");
}

class Watcher {
 public:
  Watcher(const TopOptions& options, HttpClient& http) : options_(options), http_(http) {}

  Result<void> look();
  int once();
  int live();

 private:
  enum class Wait { time, changed, leave };
  Wait wait_until(TimePoint when);
  Result<std::string> get(const std::string& path);
  void describe(bool keys);

  const TopOptions& options_;
  HttpClient& http_;
  const RealClock clock_;
  TopView view_;
  TimePoint last_{};
  std::size_t models_ = 0;  // that the server lists
};

Result<std::string> Watcher::get(const std::string& path) {
  HttpCall call;
  call.path = path;
  call.timeout = kAnswerWithin;
  auto answer = http_.call(call);
  if (!answer) return answer.error();
  if (answer->status != 200) return Error{ErrorCode::unavailable, message_of(*answer), {}};
  return std::move(answer->body);
}

// `keys`: they work.
void Watcher::describe(bool keys) {
  std::string title = "chasqui top  " + options_.url;
  if (keys) title = "chasqui top  o m t s q: overview, models, tenants, sequences, quit  " + options_.url;
  boost::system::error_code error;
  const auto body = get("/props");
  const boost::json::value props = body ? boost::json::parse(*body, error) : boost::json::value();
  if (body && !error && props.is_object()) {
    const std::string models = models_ > 1 ? std::to_string(models_) + " models" : "";
    title += "  " + (models.empty() ? text_at(props.get_object(), "model_alias") : models);
    title += "  " + text_at(props.get_object(), "build_info");
  }
  view_.describe(title);
}

Result<void> Watcher::look() {
  auto body = get("/metrics");
  if (!body) {
    view_.complain(body.error().message);
    return body.error();
  }
  MetricsSample sample = MetricsSample::parse(*body);
  if (!sample.has("chasqui_requests_running")) {
    const Error foreign{ErrorCode::unavailable, options_.url + " has no metrics of a Chasqui server", {}};
    view_.complain(foreign.message);
    return foreign;
  }
  const TimePoint now = clock_.now();
  const double since = last_ == TimePoint{} ? to_seconds(options_.interval) : to_seconds(now - last_);
  view_.add(std::move(sample), since);
  const auto list = get("/debug/sequences");
  view_.show(list ? SequenceSample::parse(*list) : std::nullopt, list ? "" : list.error().message, since);
  const auto models = get("/v1/models");
  auto lines = models ? served_lines(*models, true) : Result<std::vector<ServedLine>>(models.error());
  models_ = lines ? lines->size() : 0;
  view_.show_models(lines ? std::move(*lines) : std::vector<ServedLine>());
  view_.complain("");
  last_ = now;
  return {};
}

Watcher::Wait Watcher::wait_until(TimePoint when) {
  const bool listens = is_terminal(STDIN_FILENO);
  for (;;) {
    if (SignalWatch::interrupted()) return Wait::leave;
    if (SignalWatch::resized()) return Wait::changed;
    const double left = to_milliseconds(when - clock_.now());
    if (left <= 0) return Wait::time;
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    if (::poll(&keys, listens ? 1 : 0, static_cast<int>(std::clamp(left, 1.0, 1000.0))) <= 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return Wait::leave;
    if (key == 'o') view_.focus(TopFocus::overview);
    if (key == 'm') view_.focus(TopFocus::models);
    if (key == 't') view_.focus(TopFocus::tenants);
    if (key == 's') view_.focus(TopFocus::sequences);
    if (key == 'o' || key == 'm' || key == 't' || key == 's') return Wait::changed;
  }
}

int Watcher::once() {
  describe(false);
  if (wait_until(clock_.now() + options_.interval) == Wait::leave) return 1;
  if (auto seen = look(); !seen) {
    write_error("chasqui top: " + seen.error().message + "\n");
    return 1;
  }
  Size size{120, 60};
  if (is_terminal(STDOUT_FILENO)) size = terminal_size(STDOUT_FILENO);
  for (const std::string& line : view_.lines(size, Paint(shows_colours(STDOUT_FILENO)))) write_out(line + "\n");
  return 0;
}

int Watcher::live() {
  describe(true);
  const OwnScreen screen;
  const Paint paint(shows_colours(STDOUT_FILENO));
  for (;;) {
    draw(view_, paint);
    const TimePoint next = clock_.now() + options_.interval;
    Wait end = Wait::changed;
    while ((end = wait_until(next)) == Wait::changed) draw(view_, paint);
    if (end == Wait::leave) return 0;
    (void)look();  // the picture says what went wrong, and goes on when it is over
  }
}

}  // namespace

int top(const TopOptions& options) {
  const SignalWatch signals;
  auto http = HttpClient::open(options.url, options.api_key);
  if (!http) {
    write_error("chasqui top: " + http.error().message + "\n");
    return 1;
  }
  Watcher watcher(options, **http);
  if (auto seen = watcher.look(); !seen) {
    write_error("chasqui top: " + seen.error().message + "\n");
    return 1;
  }
  const bool live = !options.once && is_terminal(STDOUT_FILENO) && is_terminal(STDIN_FILENO);
  return live ? watcher.live() : watcher.once();
}

}  // namespace chasqui::cli
