#include "cli/doctor.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/json_writer.h"

namespace chasqui::cli {
namespace {

using Level = Finding::Level;

std::string_view word(Level level) {
  switch (level) {
    case Level::good: return "ok";
    case Level::warning: return "warning";
    case Level::bad: return "bad";
  }
  return "";
}

Finding cpu(const DoctorQuestion& question) {
  if (question.runtime_error.empty()) return {Level::good, "cpu", question.runtime, ""};
  return {Level::bad, "cpu", question.runtime_error, "build on this machine, or for any with cmake -DCHASQUI_CPU=any"};
}

Finding cores(const DoctorQuestion& question, const Machine& machine) {
  std::string found = std::to_string(machine.cores) + " cores";
  if (machine.group_cores) {
    char quota[64];
    std::snprintf(quota, sizeof quota, ", %.1f of them by the control group's quota", *machine.group_cores);
    found += quota;
    const int whole = std::max(1, static_cast<int>(std::floor(*machine.group_cores)));
    if (question.threads > whole && whole < machine.cores) {
      return {Level::warning, "cores", found,
              "compute threads beyond the quota stop each other: start without --threads, or with --threads " +
                  std::to_string(whole)};
    }
  }
  if (question.threads > machine.cores) {
    return {Level::warning, "cores", found,
            "--threads " + std::to_string(question.threads) + " is more than there are: use --threads " +
                std::to_string(machine.cores)};
  }
  return {Level::good, "cores", found, ""};
}

Finding memory(const DoctorQuestion& question, const Machine& machine) {
  std::string found = bytes_in_words(machine.free_bytes()) + " free of " + bytes_in_words(machine.memory_bytes);
  if (machine.group_limit_bytes) found += ", limit of the control group " + bytes_in_words(*machine.group_limit_bytes);
  const std::uint64_t elsewhere = question.elsewhere_bytes;
  if (elsewhere > 0) found += "; " + bytes_in_words(elsewhere) + " free on RPC servers";
  if (question.needed_bytes == 0) return {Level::good, "memory", found, ""};
  found += "; the model and its KV cache take " + bytes_in_words(question.needed_bytes);
  if (question.needed_bytes <= machine.free_bytes() + elsewhere) return {Level::good, "memory", found, ""};
  return {Level::bad, "memory", found,
          "serve fewer slots (-np), a smaller context (-c) or -ctk q8_0 -ctv q8_0, or a model of a smaller "
          "quantization: chasqui inspect has a table"};
}

Finding open_files(const DoctorQuestion& question, const Machine& machine) {
  constexpr std::uint64_t kFew = 1024;
  if (!machine.open_files) return {Level::good, "files", "any number may be open", ""};
  const std::string found = std::to_string(*machine.open_files) + " may be open, each client is one";
  if (*machine.open_files >= kFew && *machine.open_files >= 4 * static_cast<std::uint64_t>(question.slots)) {
    return {Level::good, "files", found, ""};
  }
  return {Level::warning, "files", found, "raise the hard limit: ulimit -Hn 65536, or LimitNOFILE= of the service"};
}

Finding locked_memory(const DoctorQuestion& question, const Machine& machine) {
  const std::string found =
      machine.locked_bytes ? bytes_in_words(*machine.locked_bytes) + " may be locked" : "any memory may be locked";
  if (!question.mlock || !machine.locked_bytes || *machine.locked_bytes >= question.needed_bytes) {
    return {Level::good, "memlock", found, ""};
  }
  return {Level::bad, "memlock", found + ", and --mlock needs " + bytes_in_words(question.needed_bytes),
          "raise it: ulimit -l unlimited, or LimitMEMLOCK=infinity of the service; or leave --mlock out"};
}

}  // namespace

Findings check_machine(const DoctorQuestion& question, const Machine& machine) {
  return {cpu(question), cores(question, machine), memory(question, machine), open_files(question, machine),
          locked_memory(question, machine)};
}

Findings check_model(const DoctorQuestion& question) {
  const std::string name = question.model_path.empty() ? "the built-in model" : question.model_path;
  if (!question.model_error.empty()) {
    return {{Level::bad, "model", question.model_error, "name a GGUF file that can be read with -m"}};
  }
  Findings out{{Level::good, "model", name + " can be read", ""}};
  if (!question.template_error.empty()) {
    out.push_back({Level::bad, "template", question.template_error, "give another with --chat-template-file"});
  } else if (!question.has_template) {
    out.push_back({Level::warning, "template", "the model has none",
                   "for /v1/chat/completions give one with --chat-template-file"});
  } else {
    out.push_back({Level::good, "template", "it renders a conversation", ""});
  }
  return out;
}

bool all_well(const Findings& findings) {
  for (const Finding& finding : findings) {
    if (finding.level == Level::bad) return false;
  }
  return true;
}

std::string findings_text(const Findings& findings, const Paint& paint) {
  std::string out;
  for (const Finding& finding : findings) {
    const std::string_view colour = finding.level == Level::good      ? paint.green
                                    : finding.level == Level::warning ? paint.yellow
                                                                      : paint.red;
    std::string level(word(finding.level));
    level.resize(9, ' ');
    std::string check = finding.check;
    check.resize(std::max<std::size_t>(check.size(), 16), ' ');
    out += std::string(colour) + level + std::string(paint.off) + check + ' ' + harmless(finding.found) + '\n';
    if (!finding.advice.empty()) out += std::string(26, ' ') + "→ " + harmless(finding.advice) + '\n';
  }
  return out;
}

std::string findings_json(const Findings& findings) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.field("ok", all_well(findings));
  w.begin_array("checks");
  for (const Finding& finding : findings) {
    w.begin_object();
    w.field("check", finding.check);
    w.field("level", word(finding.level));
    w.field("found", finding.found);
    if (!finding.advice.empty()) w.field("advice", finding.advice);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return out + "\n";
}

}  // namespace chasqui::cli
