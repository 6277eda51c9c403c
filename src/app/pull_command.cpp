#include "app/pull_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "app/environment.h"
#include "app/model_search.h"
#include "app/progress_bar.h"
#include "app/stop_signals.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log_sink.h"
#include "cli/hub_models.h"
#include "cli/machine.h"
#include "cli/model_files.h"
#include "cli/terminal.h"
#include "pull/pull.h"

namespace chasqui {
namespace {

constexpr Duration kDrawEvery = std::chrono::milliseconds(100);
constexpr int kBesideLabel = 68;  // columns of the bar and of what stands behind it
constexpr int kLabelLeast = 12;

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = variable_text(name); !value.empty()) return value;
  }
  return "";
}

// The one that `hf auth login` has kept, where none is given.
std::string kept_token() {
  std::string path = variable_text("HF_TOKEN_PATH");
  if (path.empty()) {
    const std::string home = variable_text("HF_HOME");
    const std::string cache = variable_text("XDG_CACHE_HOME");
    path = !home.empty()    ? home + "/token"
           : !cache.empty() ? cache + "/huggingface/token"
                            : variable_text("HOME") + "/.cache/huggingface/token";
  }
  std::string token;
  std::ifstream file(path);
  std::getline(file, token);
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  return token;
}

Result<pull::HubSettings> hub_settings(const PullConfig& config) {
  pull::HubSettings out{first_of({"MODEL_ENDPOINT", "HF_ENDPOINT"}), config.token, config.retries};
  if (out.endpoint.empty()) out.endpoint = "https://huggingface.co";
  while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  if (!out.endpoint.starts_with("http://") && !out.endpoint.starts_with("https://")) {
    return invalid_field("", "HF_ENDPOINT is the address of a hub, http:// or https://; got " + out.endpoint);
  }
  if (out.token.empty()) out.token = kept_token();
  if (!std::ranges::all_of(out.token, [](char c) { return c > ' ' && c < 0x7f; })) {
    return invalid_field("", "the token has spaces or other characters that no token has");
  }
  return out;
}

Result<pull::PullOrder> order_of(const PullConfig& config) {
  pull::PullOrder out;
  auto name = pull::read_repo_name(config.name);
  if (!name) return name.error();
  if (!name->quant.empty() && !config.file.empty()) {
    return invalid_field("", "name a quantization or a file (--hf-file), not both");
  }
  if (!pull::is_safe_path(config.revision)) {
    return invalid_field("", "--revision is a branch, a tag or a commit; got " + config.revision);
  }
  out.name = std::move(*name);
  out.file = config.file;
  out.revision = config.revision;
  out.projector = !config.no_projector;
  const cli::ModelFolders folders = folders_of_models();
  if (folders.hub.hub.empty()) return invalid_field("", "nothing says where models are kept: set HF_HOME or HOME");
  out.cache = folders.hub.hub.front();
  return out;
}

// A bar for each file where standard error is a terminal; elsewhere a line when it begins and one when it ends.
class PullView final : public pull::Watcher {
 public:
  void begins(const std::string& file, std::uint64_t bytes, std::uint64_t have) override {
    bytes_ = bytes;
    have_at_first_ = have;
    began_ = clock_.now();
    drawn_ = began_ - kDrawEvery;
    if (terminal_) {
      bar_.emplace(label_of(file), ProgressBar::End::stays, false);
      return moves(have);
    }
    say(file + ": fetching " + cli::bytes_in_words(bytes - std::min(have, bytes)) +
        (have > 0 ? ", " + cli::bytes_in_words(have) + " are here already" : ""));
  }

  void moves(std::uint64_t have) override {
    have_at_first_ = std::min(have_at_first_, have);  // it began again
    const TimePoint now = clock_.now();
    if (!bar_ || now - drawn_ < kDrawEvery) return;
    drawn_ = now;
    const double rate = static_cast<double>(have - have_at_first_) / std::max(1e-3, to_seconds(now - began_));
    std::string more = "  " + cli::bytes_in_words(have);
    if (rate >= 1) {
      more += ", " + cli::bytes_in_words(static_cast<std::uint64_t>(rate)) + "/s, " +
              time_in_words(static_cast<double>(bytes_ - std::min(have, bytes_)) / rate) + " left";
    }
    bar_->show(static_cast<double>(have) / static_cast<double>(std::max<std::uint64_t>(1, bytes_)), std::move(more));
  }

  void ends(const std::string& file, std::uint64_t bytes) override {
    if (bar_) {
      bar_->done();
      bar_.reset();
      return;
    }
    say(file + ": done, " + cli::bytes_in_words(bytes));
  }

  void knows(const std::string& file, std::uint64_t bytes) override {
    say(file + ": is here already, " + cli::bytes_in_words(bytes));
  }
  void waits(const std::string& file) override { say(file + ": another process fetches it; waiting"); }
  void notes(std::string_view what) override { say(std::string(what)); }

  void say(const std::string& text) const {
    const std::string_view erase = bar_ ? kEraseLine : std::string_view();
    cli::write_error(std::string(erase) + "chasqui pull: " + cli::harmless(text) + '\n');
  }

  // What is drawn of a file that did not come is erased.
  void close() { bar_.reset(); }
  bool on_terminal() const { return terminal_; }

 private:
  // The end of a name says more than its beginning.
  std::string label_of(const std::string& file) const {
    const std::string name = cli::harmless(file.substr(file.rfind('/') + 1));
    const auto most =
        static_cast<std::size_t>(std::max(kLabelLeast, cli::terminal_size(STDERR_FILENO).columns - kBesideLabel));
    return name.size() <= most ? name : "…" + name.substr(name.size() - most + 1);
  }

  static std::string time_in_words(double seconds) {
    const auto whole = [](double value) { return std::to_string(std::llround(std::min(value, 1e9))); };
    if (seconds < 100) return whole(seconds) + " s";
    return seconds < 6000 ? whole(seconds / 60) + " min" : whole(seconds / 3600) + " h";
  }

  const bool terminal_ = cli::is_terminal(STDERR_FILENO);
  const RealClock clock_;
  std::optional<ProgressBar> bar_;
  std::uint64_t bytes_ = 0;
  std::uint64_t have_at_first_ = 0;
  TimePoint began_{};
  TimePoint drawn_{};
};

std::string pulled_json(const pull::Pulled& pulled) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("name", pulled.model);
  json.field("commit", pulled.commit);
  json.begin_array("files");
  for (const pull::PulledFile& file : pulled.files) {
    json.begin_object();
    json.field("name", file.name);
    json.field("bytes", file.bytes);
    json.field("fetched_bytes", file.fetched_bytes);
    json.field("path", file.path);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return out + "\n";
}

// What serves just that; empty: it is no model. -hf finds the snapshot of `main` alone where there is one.
std::string command_for(const pull::Pulled& pulled) {
  const std::string& path = pulled.files.front().path;
  if (cli::models_among({{path, pulled.files.front().bytes}}).empty()) return "";
  const auto found = cli::find_in_hub(folders_of_models().hub, pulled.model, "");
  std::error_code unknown;
  const bool same = found && std::filesystem::equivalent(found->path, path, unknown);
  return "chasqui serve " + (same ? "-hf " + pulled.model : "-m " + path);
}

Result<pull::Pulled> pull_with(const pull::PullOrder& order, const pull::HubSettings& settings,
                               const pull::StopSign& stop, PullView& view) {
  auto transfer = pull::Transfer::open(
      {std::string("chasqui/") + CHASQUI_VERSION, first_of({"CURL_CA_BUNDLE", "SSL_CERT_FILE"})}, stop);
  if (!transfer) return transfer.error();
  pull::Hub hub(**transfer, settings, stop, view);
  return pull::pull(order, hub, settings.retries, stop, view);
}

}  // namespace

CLI::App* add_pull_command(CLI::App& app, PullConfig& config) {
  CLI::App* pull = app.add_subcommand("pull", "Download a model of Hugging Face to where serve and list find it");
  pull->add_option("model", config.name, "of several quantizations Q4_K_M, or else Q8_0, or else the first")
      ->required()
      ->type_name("USER/REPO[:QUANT]");
  pull->add_option("--hf-file", config.file, "(-hff) this file of the repository, with all its parts")
      ->type_name("NAME");
  pull->add_option("--revision", config.revision, "branch, tag or commit")->type_name("REV")->capture_default_str();
  pull->add_option(
          "--token,--hf-token", config.token,
          "(-hft) for repositories that are not public; as a variable other users of the machine do not see it")
      ->envname("HF_TOKEN")
      ->type_name("TOKEN");
  pull->add_flag("--no-mmproj", config.no_projector, "without the projector (mmproj) that goes with the model");
  pull->add_option("--retries", config.retries, "in a row, of what breaks off")
      ->check(CLI::Range(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  pull->add_flag("--json", config.json, "for programs");
  pull->footer(
      "Run again, it goes on where it was ended. HF_ENDPOINT names another hub, https_proxy a proxy, SSL_CERT_FILE "
      "the\n"
      "certificates to trust. Files are kept where HF_HOME, HF_HUB_CACHE or LLAMA_CACHE say.");
  return pull;
}

int run_pull(const PullConfig& config) {
  StopSignals signals;
  PullView view;
  const auto order = order_of(config);
  const auto settings = hub_settings(config);
  if (!order || !settings) {
    view.say((order ? settings.error() : order.error()).message);
    return 2;
  }
  const pull::StopSign stop(signals.fd());
  const auto pulled = pull_with(*order, *settings, stop, view);
  view.close();
  if (!pulled) {
    const int signal = signals.take();
    view.say(signal != 0 ? "stopped; the same command goes on from here" : pulled.error().message);
    return signal != 0 ? 128 + signal : 1;
  }
  cli::write_out(config.json ? pulled_json(*pulled) : pulled->files.front().path + '\n');
  if (!view.on_terminal() || config.json) return 0;
  if (const std::string command = command_for(*pulled); !command.empty()) view.say("serve it with `" + command + '`');
  return 0;
}

}  // namespace chasqui
