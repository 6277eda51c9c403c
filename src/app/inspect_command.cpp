#include "app/inspect_command.h"

#include <cstdio>
#include <fstream>
#include <iterator>

#include <chasqui_demo_model.h>
#include <unistd.h>

#include "app/backends.h"
#include "app/capacity.h"
#include "app/draft_models.h"
#include "app/load_guard.h"
#include "app/model_search.h"
#include "app/rpc_peers.h"
#include "app/serve_plan.h"
#include "base/log.h"
#include "cli/doctor.h"
#include "cli/inspect.h"
#include "cli/machine.h"
#include "model/gguf_summary.h"
#include "model/llama_places.h"
#include "model/llama_runtime.h"
#include "model/loaded_model.h"

namespace chasqui {
namespace {

std::string name_of(const ServeConfig& config) {
  return config.model_path.empty() ? "chasqui-demo" : config.model_path;
}

Result<GgufSummary> summary_of(const ServeConfig& config) {
  const LoadGuard guard(name_of(config));
  return config.model_path.empty() ? summarize_gguf(demo_model()) : summarize_gguf(config.model_path);
}

// Rendering needs the vocabulary, and so the model; its weights are mapped and not touched.
std::string template_error(const ServeConfig& config) {
  const LoadGuard guard(name_of(config));
  LoadOptions options;
  options.weights.on_trial = true;  // nothing is computed, so that no device gets a copy
  if (!config.chat_template_file.empty()) {
    std::ifstream file(config.chat_template_file);
    options.chat_template.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto model = config.model_path.empty() ? load_llama(demo_model(), "chasqui-demo", options)
                                               : load_llama(config.model_path, options);
  if (!model) return model.error().message;
  Chat chat;
  ChatMessage question;
  question.role = "user";
  question.content = "Hello";
  chat.messages.push_back(std::move(question));
  const auto text = model->chat_template->render(chat);
  if (!text) return text.error().message;
  return text->find("Hello") == std::string::npos ? "the chat template leaves out what the user says" : "";
}

// As `serve` would start it now.
ModelConfig plan_for(const ServeConfig& config, const GgufSummary& summary) {
  const std::uint64_t free_bytes = cli::look_at_machine().free_bytes() + memory_of_peers().free_bytes;
  const bool gpu = start_llama_runtime() && offloads_to_gpu();
  const std::uint64_t kv_bytes = kv_bytes_for(free_bytes, summary.tensor_bytes, gpu);
  ModelConfig asked = config.model;
  asked.rollback = wanted_rollback(config.speculation, summary.trims_anywhere());
  return with_capacity(asked, cli::info_of(summary), kv_bytes, config.workers);
}

cli::DoctorQuestion question_of(const ServeConfig& config) {
  cli::DoctorQuestion question;
  question.model_path = config.model_path;
  question.mlock = config.use_mlock;
  question.threads = config.model.threads;
  if (const auto started = start_llama_runtime(); started) {
    question.runtime = describe_llama_runtime();
  } else {
    question.runtime_error = started.error().message;
  }
  const auto summary = summary_of(config);
  if (!summary) {
    question.model_error = summary.error().message;
    return question;
  }
  const ModelConfig plan = plan_for(config, *summary);
  question.slots = plan.slots;
  question.needed_bytes = cli::memory_of_plan(*summary, plan);
  question.elsewhere_bytes = memory_of_peers().free_bytes;
  question.has_template = !summary->chat_template.empty() || !config.chat_template_file.empty();
  if (summary->kind != "model") {
    question.model_error = config.model_path + ": it is no model but an " + summary->kind;
  } else if (question.has_template && question.runtime_error.empty()) {
    question.template_error = template_error(config);
  }
  return question;
}

// Libraries beside the binary. The devices of those that were loaded stand in the line of the CPU, too.
void find_backends(cli::Findings& findings) {
  for (const Backend& backend : backends()) {
    const bool loaded = backend.why.empty();
    findings.push_back({loaded ? cli::Finding::Level::good : cli::Finding::Level::warning, "backend",
                        backend.library + (loaded ? ": " + backend.devices : " is not loaded: " + backend.why),
                        loaded ? "" : "mend it or take it away: the server starts without it (docs/backends.md)"});
  }
}

// The devices of other machines, by the names that flags have for them. That they answer was seen before.
void find_peers(cli::Findings& findings) {
  for (const RpcPeer& peer : rpc_peers()) {
    std::string found = peer.endpoint + " lends ";
    for (const RpcDevice& device : peer.devices) {
      found += (&device == &peer.devices.front() ? "" : ", ") + device.name + " with " +
               cli::bytes_in_words(device.free_bytes) + " free of " + cli::bytes_in_words(device.total_bytes);
    }
    findings.push_back({cli::Finding::Level::good, "rpc", std::move(found), ""});
  }
}

// Where the layers of a model will lie, where there is a choice.
void find_places(cli::Findings& findings, const ServeConfig& config) {
  const auto summary = summary_of(config);
  if (!summary || !start_llama_runtime() || !offloads_to_gpu()) return;
  std::vector<RpcDevice> remote;
  for (const RpcPeer& peer : rpc_peers()) remote.insert(remote.end(), peer.devices.begin(), peer.devices.end());
  const auto layers = static_cast<std::int32_t>(summary->layers);
  std::string found;
  for (const LayerRange& range : forecast_layers(config.llama, config.gpu_layers, layers, remote)) {
    found += (found.empty() ? "layers " : ", ") + std::to_string(range.first) + " to " + std::to_string(range.last) +
             " on " + range.device;
  }
  if (found.empty()) return;
  found += "; " + std::to_string(layers) + " is the output";
  findings.push_back({cli::Finding::Level::good, "layers", std::move(found), ""});
}

// What serve itself checks before it reads a model.
cli::Finding start_finding(ServeConfig config) {
  if (const auto plan = plan_serve(config); !plan) {
    return {cli::Finding::Level::bad, "start", plan.error().message, "chasqui serve with these flags ends with code 2"};
  }
  return {cli::Finding::Level::good, "start", "the flags, and the files and addresses that they name, are good", ""};
}

}  // namespace

int run_inspect(ServeConfig config, bool json) {
  configure_log(LogLevel::off, LogFormat::text);
  auto file = file_of_model(config.model_path);
  if (file) config.model_path = std::move(*file);
  const auto summary = file ? summary_of(config) : Result<GgufSummary>(file.error());
  if (!summary) {
    std::fprintf(stderr, "chasqui inspect: %s\n", cli::harmless(summary.error().message).c_str());
    return 1;
  }
  const ModelConfig plan = plan_for(config, *summary);
  const cli::Machine machine = cli::look_at_machine();
  const cli::Paint paint(cli::shows_colours(STDOUT_FILENO));
  cli::write_out(json ? cli::inspect_json(*summary, plan, machine) : cli::inspect_text(*summary, plan, machine, paint));
  return 0;
}

int run_doctor(const ServeConfig& config, bool json) {
  configure_log(LogLevel::off, LogFormat::text);
  cli::Findings findings = cli::check_machine(question_of(config.models.front()), cli::look_at_machine());
  for (const ServeConfig& model : config.models) {
    for (cli::Finding& finding : cli::check_model(question_of(model))) findings.push_back(std::move(finding));
    find_places(findings, model);
  }
  for (const net::ListenAddress& address : host_addresses(config)) {
    findings.push_back(address.is_unix() ? cli::check_socket_path("--host", address.path)
                                         : cli::check_port(address.host, address.port));
  }
  if (!config.unix_socket.empty()) findings.push_back(cli::check_socket_path("--unix-socket", config.unix_socket));
  if (!config.socket.empty()) findings.push_back(cli::check_socket_path("--socket", config.socket));
  if (!config.cache_disk.empty()) findings.push_back(cli::check_folder("--cache-disk", config.cache_disk));
  if (!config.slot_save_path.empty()) findings.push_back(cli::check_folder("--slot-save-path", config.slot_save_path));
  if (!config.session_dir.empty()) findings.push_back(cli::check_folder("--session-dir", config.session_dir));
  if (!config.batch_dir.empty()) findings.push_back(cli::check_private_folder("--batch-dir", config.batch_dir));
  if (!config.api_key_file.empty()) {
    findings.push_back(cli::check_readable("--api-key-file", config.api_key_file, true));
  }
  if (!config.chat_template_file.empty()) {
    findings.push_back(cli::check_readable("--chat-template-file", config.chat_template_file, false));
  }
  find_backends(findings);
  find_peers(findings);
  findings.push_back(start_finding(config));
  const cli::Paint paint(cli::shows_colours(STDOUT_FILENO));
  cli::write_out(json ? cli::findings_json(findings) : cli::findings_text(findings, paint));
  return cli::all_well(findings) ? 0 : 1;
}

}  // namespace chasqui
