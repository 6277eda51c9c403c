#include "app/replay_command.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "api/observe/step_json.h"
#include "app/deadly_signals.h"
#include "base/log.h"
#include "cli/machine.h"
#include "cli/terminal.h"
#include "record/load_trace.h"
#include "record/replay.h"

namespace chasqui {
namespace {

constexpr int kWrongFile = 2;
constexpr const char* kNoSuchStream = ": there is no such model or worker in it";

// Where a replay is, for the handler of signals: a scheduler that fails a CHECK ends the process, as it did then.
volatile std::uint64_t reached_record = 0;
volatile std::uint64_t reached_plan = 0;

void tell_where(int /*signal*/) {
  std::array<char, 160> line{};
  // What snprintf does with numbers takes no lock and no memory.
  const int length = std::snprintf(
      line.data(), line.size(), "chasqui replay: the scheduler ends the process in step %llu (record %llu)\n",
      static_cast<unsigned long long>(reached_plan + 1), static_cast<unsigned long long>(reached_record));
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(length));
  ::_exit(1);
}

int fail_replay(const std::string& why, int code) {
  std::fprintf(stderr, "chasqui replay: %s\n", cli::harmless(why).c_str());
  return code;
}

// Steps of a stream as a server's feed has them.
class StepList {
 public:
  void computed(const Batch& batch, const BatchResult& result, TimePoint planned) {
    StepRecord& step = steps_.emplace_back(describe_step(batch, result));
    step.started = std::chrono::nanoseconds(planned.time_since_epoch()).count();
    step.took = std::chrono::nanoseconds(result.finished - planned).count();
  }
  void committed(const Scheduler& scheduler) { add_occupancy(scheduler.occupancy(), steps_.back()); }
  const std::vector<StepRecord>& all() const { return steps_; }

 private:
  std::vector<StepRecord> steps_;
};

struct Replayed {
  ReplayReport report;
  StepList steps;
};

std::string steps_document(const std::vector<Replayed>& replayed) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_object("promise");
  std::int32_t slots = 0;
  TokenCount cells = 0;
  for (const Replayed& one : replayed) {
    slots += one.report.head.config.kv.slots;
    cells += one.report.head.config.kv.cells;
  }
  write_promise(json, replayed.size(), slots, cells, replayed.front().report.head.config.targets);
  json.end_object();
  json.begin_array("steps");
  for (std::size_t worker = 0; worker < replayed.size(); ++worker) {
    std::uint64_t number = 0;
    for (const StepRecord& step : replayed[worker].steps.all()) write_step(json, worker, ++number, step);
  }
  json.end_array();
  json.field("missed", std::uint64_t{0});
  json.end_object();
  return out + "\n";
}

std::string name_of(const RecordedHead& head) { return head.model + ", worker " + std::to_string(head.worker); }

// One line.
std::string summary(const ReplayReport& report) {
  std::string out = name_of(report.head) + ": " + std::to_string(report.requests) + " requests, " +
                    std::to_string(report.steps) + " steps in ";
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f s", to_seconds(report.ended - report.began));
  out += seconds.data();
  if (report.difference) return out + ": the plans differ\n  " + *report.difference + "\n";
  if (report.fault) return out + ": the recording cannot be followed\n  " + *report.fault + "\n";
  out += ": all " + std::to_string(report.plans) + " plans are the same\n";
  if (!report.end.empty()) out += "  the recording had ended before the server did: " + report.end + "\n";
  return out;
}

Replayed replay_one(const RecordStream& stream, bool keeps_steps) {
  Replayed out;
  ReplayOptions options;
  options.before = [](std::uint64_t record, std::uint64_t plan) {
    reached_record = record;
    reached_plan = plan;
  };
  if (keeps_steps) {
    options.computed = [&out](const Batch& batch, const BatchResult& result, TimePoint planned) {
      out.steps.computed(batch, result, planned);
    };
    options.committed = [&out](const Scheduler& scheduler) { out.steps.committed(scheduler); };
  }
  out.report = replay(stream, options);
  return out;
}

bool wanted(const RecordedHead& head, const ReplayConfig& config) {
  return (!config.worker || *config.worker == head.worker) && (config.model.empty() || config.model == head.model);
}

Result<RecordFile> read_recording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::not_found, path + " cannot be read", ""};
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  auto read = RecordFile::parse(std::move(bytes));
  if (!read) return Error{read.error().code, path + ": " + read.error().message, ""};
  return read;
}

void say_about(const RecordedHead& head) {
  std::string out = name_of(head) + ", recorded by " + head.program + "\n";
  for (const auto& [name, value] : head.about) out += "  " + name + ": " + value + "\n";
  cli::write_out(cli::harmless(out));
}

void say_cut(const RecordFile& file) {
  if (file.cut() == 0) return;
  std::fprintf(stderr, "chasqui replay: the last %s are not whole, and were left out\n",
               cli::bytes_in_words(file.cut()).c_str());
}

int write_load(const RecordFile& file, const ReplayConfig& config) {
  std::vector<const RecordStream*> streams;
  for (const RecordStream& stream : file.streams()) {
    const auto head = head_of(stream);
    if (!head) return fail_replay(config.file + ": " + head.error().message, kWrongFile);
    if (!wanted(*head, config)) continue;
    if (config.about) say_about(*head);
    streams.push_back(&stream);
  }
  if (streams.empty()) return fail_replay(config.file + kNoSuchStream, kWrongFile);
  const auto trace = load_trace(streams);
  if (!trace) return fail_replay(config.file + ": " + trace.error().message, kWrongFile);
  say_cut(file);
  std::ofstream out(config.trace, std::ios::binary);
  out << trace->lines;
  if (!out.flush()) return fail_replay("--trace " + config.trace + " cannot be written", kWrongFile);
  cli::write_out(std::to_string(trace->requests) + " requests\n");
  return 0;
}

}  // namespace

CLI::App* add_replay_command(CLI::App& app, ReplayConfig& config) {
  CLI::App* command =
      app.add_subcommand("replay", "Plan what serve --record has recorded again, and compare: a bug report is a file");
  command->add_option("file", config.file, "what serve --record has written")->required()->type_name("FILE");
  command->add_option("--worker", config.worker, "only the one with this number")->type_name("N");
  command->add_option("--model", config.model, "only the one with this name")->type_name("NAME");
  command->add_option("--steps", config.steps, "write the steps to this file, which the page's batch view opens")
      ->type_name("FILE");
  command
      ->add_option("--trace", config.trace,
                   "write the requests to this file instead, as chasqui bench --trace sends them to any server")
      ->type_name("FILE")
      ->excludes("--steps");
  command->add_flag("--about", config.about, "print what the recording says of each model and worker, too");
  return command;
}

int run_replay(const ReplayConfig& config) {
  configure_log(LogLevel::error, LogFormat::text);
  const auto file = read_recording(config.file);
  if (!file) return fail_replay(file.error().message, kWrongFile);
  if (!config.trace.empty()) return write_load(*file, config);
  const DeadlySignals handler(&tell_where, SA_RESETHAND, DeadlySignals::Which::unhandled);
  std::vector<Replayed> replayed;
  int code = 0;
  for (const RecordStream& stream : file->streams()) {
    const auto head = head_of(stream);
    if (!head) return fail_replay(config.file + ": " + head.error().message, kWrongFile);
    if (!wanted(*head, config)) continue;
    if (config.about) say_about(*head);
    const ReplayReport& report = replayed.emplace_back(replay_one(stream, !config.steps.empty())).report;
    cli::write_out(cli::harmless(summary(report)));
    if (report.fault) code = kWrongFile;
    if (report.difference) code = std::max(code, 1);
  }
  if (replayed.empty()) return fail_replay(config.file + kNoSuchStream, kWrongFile);
  say_cut(*file);
  if (!config.steps.empty()) {
    std::ofstream out(config.steps, std::ios::binary);
    out << steps_document(replayed);
    if (!out.flush()) return fail_replay("--steps " + config.steps + " cannot be written", kWrongFile);
  }
  return code;
}

}  // namespace chasqui
