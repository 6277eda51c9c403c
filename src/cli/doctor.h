// `chasqui doctor`: what stands in the way of serving here, and what to do about it. The checks are pure functions of
// what was found; looking is separate, so that every finding can be tested.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/machine.h"
#include "cli/terminal.h"

namespace chasqui::cli {

struct Finding {
  enum class Level { good, warning, bad };
  Level level = Level::good;
  std::string check;   // one word: cpu, memory, files …
  std::string found;   // what it is like
  std::string advice;  // what to do; empty when it is good
};
using Findings = std::vector<Finding>;

// What is to be served, of the same flags as `chasqui serve`.
struct DoctorQuestion {
  std::string model_path;   // empty: the built-in one
  std::string model_error;  // what kept it from being read; empty: it was
  std::string template_error;
  bool has_template = true;
  std::uint64_t needed_bytes = 0;     // weights and KV; 0: not known
  std::uint64_t elsewhere_bytes = 0;  // free on other machines that compute, too
  bool mlock = false;
  std::string host;
  std::uint16_t port = 0;
  std::string runtime;        // libllama and its CPU features
  std::string runtime_error;  // of start_llama_runtime()
  std::int32_t slots = 0;
  std::int32_t threads = 0;  // that were asked for; 0: chosen
};

Findings check_machine(const DoctorQuestion& question, const Machine& machine);
Findings check_model(const DoctorQuestion& question);

// These look for themselves.
Finding check_port(const std::string& host, std::uint16_t port);
// Whether files can be made and removed in it, or it could be made itself; and whether others can write there.
Finding check_folder(const std::string& flag, const std::string& path);
// … and whether it is this user's alone, and no other server uses it: for folders without one of the server's within.
Finding check_private_folder(const std::string& flag, const std::string& path);
// Whether a socket could be made there.
Finding check_socket_path(const std::string& flag, const std::string& path);
Finding check_readable(const std::string& flag, const std::string& path, bool secret);

bool all_well(const Findings& findings);  // no bad one
std::string findings_text(const Findings& findings, const Paint& paint);
std::string findings_json(const Findings& findings);

}  // namespace chasqui::cli
