#include "app/rpc_server_command.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <poll.h>

#include "app/backends.h"
#include "app/environment.h"
#include "app/rpc_peers.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "model/llama_rpc.h"
#include "model/model_config.h"
#include "net/rpc_endpoint.h"

namespace chasqui {
namespace {

constexpr int kLookForSocketEveryMs = 10;

int fail(const std::string& why, int code) {
  std::fprintf(stderr, "chasqui rpc-server: %s\n", why.c_str());
  return code;
}

// As llama.cpp's, but in a folder of ours. Empty: the system does not say where caches are.
std::string cache_folder() {
  if (const std::string caches = variable_text("XDG_CACHE_HOME"); caches.starts_with('/'))
    return caches + "/chasqui/rpc";
  const std::string home = variable_text("HOME");
  return home.starts_with('/') ? home + "/.cache/chasqui/rpc" : "";
}

// ggml binds and listens in one call that does not return: another thread sees the socket come.
class SaysWhenItListens {
 public:
  SaysWhenItListens() : thread_([this] { run(); }) {}
  ~SaysWhenItListens() {
    given_up_.raise();
    thread_.join();
  }
  SaysWhenItListens(const SaysWhenItListens&) = delete;
  SaysWhenItListens& operator=(const SaysWhenItListens&) = delete;

 private:
  void run() {
    name_this_thread("rpc-listens");
    while (!given_up_.raised()) {
      if (const auto socket = net::watch_listening_socket()) {
        std::printf("listening on %s\n", socket->name.c_str());
        std::fflush(stdout);
        return;
      }
      ::poll(nullptr, 0, kLookForSocketEveryMs);
    }
  }

  Flag given_up_;
  std::thread thread_;  // after what it uses
};

}  // namespace

CLI::App* add_rpc_server_command(CLI::App& app, RpcServerConfig& config) {
  CLI::App* command = app.add_subcommand("rpc-server", "Lend this machine's devices to a server with --rpc");
  command->add_option("-H,--host", config.host, "IPv4 address to listen on")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command->add_option("-p,--port", config.port, "… and port; 0: any that is free, which is printed")
      ->check(CLI::Range(0, 65535))
      ->type_name("PORT")
      ->capture_default_str();
  command->add_option("-d,--device", config.devices, "what to lend, as CPU,CUDA0; all but the CPU, or else the CPU")
      ->delimiter(',')
      ->type_name("NAME,…");
  command->add_option("-t,--threads", config.threads, "compute threads of the CPU; 0: half of the cores")
      ->check(CLI::Range(0, 512))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("-c,--cache", config.cache,
                    "keep large tensors in ~/.cache/chasqui/rpc, so that they are sent once; it only grows");
  command->add_flag("--rpc-public", config.anywhere, "allow an address that other networks may reach");
  return command;
}

int run_rpc_server(const RpcServerConfig& config) {
  configure_log(LogLevel::warning, LogFormat::text);
  const auto address = net::read_ipv4(config.host);
  if (!address) return fail("--host must be an IPv4 address; got " + config.host, 2);
  if (!config.anywhere && !net::is_private_address(*address)) {
    return fail("--host " + config.host + " is no address of a private network, and " + kRpcWarning +
                    ": name an address of a private network, or say --rpc-public",
                2);
  }
  std::fprintf(stderr, "chasqui rpc-server: %s\n", kRpcWarning);
  log_backends();
  RpcService service{config.host + ':' + std::to_string(config.port), config.devices, {}, config.threads};
  if (service.threads == 0) service.threads = std::max(1, default_threads() / 2);
  if (config.cache) {
    service.cache = cache_folder();
    std::error_code error;
    std::filesystem::create_directories(service.cache, error);
    if (error) return fail("--cache: " + service.cache + ": " + error.message(), 2);
  }
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): clients may be gone when they are answered
  const SaysWhenItListens says;
  const Error failed = serve_rpc(service);
  return fail(failed.message, failed.code == ErrorCode::invalid_request ? 2 : 1);
}

}  // namespace chasqui
