#include "app/listener_options.h"

#include <string>

#include "app/option_kinds.h"

namespace chasqui {
namespace {

// As chmod has it: up to four octal digits.
std::uint32_t read_mode(const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text, nullptr, 8)); }

std::string is_mode(const std::string& text) {
  const bool octal = !text.empty() && text.size() <= 4 && text.find_first_not_of("01234567") == std::string::npos;
  return octal && read_mode(text) <= 0777 ? "" : "must be octal digits between 0 and 0777, such as 0660";
}

void add_operator_options(CLI::App& app, ServeConfig& config) {
  app.add_option("--admin-listen", config.admin_listen,
                 "address or Unix socket for operators: metrics, health, /debug and drain without a client's key; "
                 "several with commas: see docs/fleet.md")
      ->envname("CHASQUI_ADMIN_LISTEN")
      ->delimiter(',')
      ->type_name("ADDRESS:PORT|PATH");
  app.add_flag("--admin-public", config.admin_public,
               "--admin-listen may be an address that other machines reach: they can read metrics and health")
      ->envname("CHASQUI_ADMIN_PUBLIC");
  app.add_option("--agent-check", config.agent_check,
                 "address for HAProxy's agent checks: each connection gets a line with up, drain or maint")
      ->envname("CHASQUI_AGENT_CHECK")
      ->type_name("ADDRESS:PORT|PATH");
}

void add_router_options(CLI::App& app, ServeConfig& config) {
  app.add_option("--kv-events", config.kv_events.endpoint,
                 "tell routers which prefixes the node holds, as vLLM does: tcp://ADDRESS:PORT (*: every address) or "
                 "ipc://PATH; see docs/fleet.md")
      ->envname("CHASQUI_KV_EVENTS")
      ->type_name("ENDPOINT");
  app.add_option("--kv-events-replay", config.kv_events.replay,
                 "repeat on this endpoint what a subscriber of --kv-events has missed")
      ->envname("CHASQUI_KV_EVENTS_REPLAY")
      ->type_name("ENDPOINT");
  app.add_flag("--kv-events-public", config.kv_events.anywhere,
               "--kv-events and --kv-events-replay may listen at addresses that other networks reach")
      ->envname("CHASQUI_KV_EVENTS_PUBLIC");
  app.add_option("--kv-events-topic", config.kv_events.topic, "topic of --kv-events; {model} is the name of the model")
      ->envname("CHASQUI_KV_EVENTS_TOPIC")
      ->type_name("TOPIC")
      ->default_str("kv@HOST@{model}");
}

}  // namespace

void add_listener_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Listeners");
  app.add_option("--host", config.host,
                 "addresses to listen on, behind commas; a path ending in .sock is a Unix socket")
      ->envname("LLAMA_ARG_HOST")
      ->type_name("ADDRESS");
  app.add_option("--port", config.port, "port to listen on; 0: any free one, see the printed address")
      ->envname("LLAMA_ARG_PORT")
      ->check(CLI::Range(0, 65535))
      ->type_name("PORT");
  app.add_option("--unix-socket", config.unix_socket, "speak HTTP on this Unix socket as well")
      ->envname("CHASQUI_UNIX_SOCKET")
      ->type_name("PATH");
  app.add_option("--socket", config.socket, "speak framed JSON on this Unix socket: see docs/protocol.md")
      ->envname("CHASQUI_SOCKET")
      ->type_name("PATH");
  app.add_option_function<std::string>(
         "--socket-mode", [&config](const std::string& text) { config.socket_mode = read_mode(text); },
         "who may connect to --socket and --unix-socket, as in chmod")
      ->envname("CHASQUI_SOCKET_MODE")
      ->check(is_mode)
      ->type_name("MODE")
      ->default_str("0600");
  app.add_option("--api-key", config.api_keys, "key that clients must send; several with commas")
      ->envname("LLAMA_API_KEY")
      ->delimiter(',')
      ->type_name("KEY");
  app.add_option("--api-key-file", config.api_key_file,
                 "file with one key, or sha256:HASH, on each line; SIGHUP reads it again")
      ->envname("LLAMA_ARG_API_KEY_FILE")
      ->type_name("FILE");
  app.add_option("--tls-cert", config.tls_certificate,
                 "PEM file with the certificate and its chain: TLS on the TCP port; SIGHUP reads it again")
      ->envname("LLAMA_ARG_SSL_CERT_FILE")
      ->type_name("FILE");
  app.add_option("--tls-key", config.tls_key, "PEM file with its key, without a password")
      ->envname("LLAMA_ARG_SSL_KEY_FILE")
      ->type_name("FILE");
  add_off_flag(app, "--no-webui", config.page, "no page at /: the routes alone")->envname("LLAMA_ARG_NO_WEBUI");
  app.add_flag("--no-auth", config.no_auth, "allow a public address without a key")->envname("CHASQUI_NO_AUTH");
  add_operator_options(app, config);
  add_router_options(app, config);
}

}  // namespace chasqui
