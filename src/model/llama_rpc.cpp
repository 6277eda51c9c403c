#include "model/llama_rpc.h"

#include <atomic>
#include <cstdio>
#include <string_view>

#include <ggml-backend.h>
#include <ggml-rpc.h>
#include <ggml.h>
#include <unistd.h>

#include "base/log_sink.h"
#include "model/llama_runtime.h"

// Of ggml, which prints it for aborts that have no callback.
extern "C" void ggml_print_backtrace(void);

namespace chasqui {
namespace {

std::atomic<RpcFailure*> failure_now = nullptr;
std::atomic_flag rpc_has_failed = ATOMIC_FLAG_INIT;

// All that ggml's RPC backend gives up for is a server that has gone, or that does not speak as it should.
void on_abort(const char* message) {
  RpcFailure* const failure = failure_now.load();
  if (failure == nullptr || std::string_view(message).find("ggml-rpc") == std::string_view::npos) {
    flush_log();
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, std::string_view(message).size());
    [[maybe_unused]] const ssize_t ended = ::write(STDERR_FILENO, "\n", 1);
    ggml_print_backtrace();
    return;  // and ggml aborts
  }
  if (!rpc_has_failed.test_and_set()) failure->rpc_failed();
  for (;;) ::pause();
}

std::string known_devices() {
  std::string out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    out += (out.empty() ? "" : ", ") + std::string(ggml_backend_dev_name(ggml_backend_dev_get(i)));
  }
  return out;
}

Result<std::vector<ggml_backend_dev_t>> lent(const std::vector<std::string>& names) {
  std::vector<ggml_backend_dev_t> out;
  for (const std::string& name : names) {
    ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
    if (device == nullptr) {
      return invalid_field("--device", "--device: there is no " + name + " here, but " + known_devices());
    }
    out.push_back(device);
  }
  if (!out.empty()) return out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const auto type = ggml_backend_dev_type(device);
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU) out.push_back(device);
  }
  if (out.empty()) out.push_back(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
  return out;
}

}  // namespace

std::string rpc_version() {
  return std::to_string(RPC_PROTO_MAJOR_VERSION) + '.' + std::to_string(RPC_PROTO_MINOR_VERSION) + '.' +
         std::to_string(RPC_PROTO_PATCH_VERSION);
}

// As ggml judges it.
bool speaks_rpc(int major, int minor) {
  return major == RPC_PROTO_MAJOR_VERSION && minor <= RPC_PROTO_MINOR_VERSION;
}

RpcFailure* on_rpc_failure(RpcFailure* failure) {
  RpcFailure* const before = failure_now.exchange(failure);
  ggml_set_abort_callback(&on_abort);
  return before;
}

Result<std::vector<RpcDevice>> add_rpc_server(const std::string& endpoint) {
  if (auto started = start_llama_runtime(); !started) return started.error();
  ggml_backend_reg_t server = ggml_backend_rpc_add_server(endpoint.c_str());
  if (server == nullptr) return invalid_field("--rpc", "--rpc: the RPC server " + endpoint + " lends no device");
  ggml_backend_register(server);
  std::vector<RpcDevice> out;
  for (std::size_t i = 0; i < ggml_backend_reg_dev_count(server); ++i) {
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(server, i);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
    out.push_back({ggml_backend_dev_name(device), free_bytes, total_bytes});
  }
  return out;
}

Error serve_rpc(const RpcService& service) {
  if (auto started = start_llama_runtime(); !started) return started.error();
  auto devices = lent(service.devices);
  if (!devices) return devices.error();
  const char* const cache = service.cache.empty() ? nullptr : service.cache.c_str();
  ggml_backend_rpc_start_server(service.endpoint.c_str(), cache, static_cast<std::size_t>(service.threads),
                                devices->size(), devices->data());
  return Error{ErrorCode::unavailable, "cannot listen on " + service.endpoint + ": is it taken?", "--port"};
}

}  // namespace chasqui
