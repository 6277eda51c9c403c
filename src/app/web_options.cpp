#include "app/web_options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "app/config.h"
#include "app/listeners.h"
#include "base/ascii.h"

namespace chasqui {
namespace {

std::string check_origin(const std::string& text) {
  return net::is_origin_rule(text)
             ? ""
             : "must be *, localhost, null, or a scheme and a host such as https://chat.example: " + text;
}

std::string check_one_origin(const std::string& text) {
  const bool one = text.find("://") != std::string::npos && net::is_origin_rule(text);
  return one ? "" : "must be a scheme and a host such as https://tools.example: " + text;
}

std::string check_host_name(const std::string& text) {
  const bool port = text.starts_with('[') ? !text.ends_with(']') : text.find(':') != std::string::npos;
  return !text.empty() && !port && net::is_authority(text) ? "" : "must be a host name without a port: " + text;
}

std::string check_list(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
  return plain && !text.empty() ? "" : "must be names with commas between them";
}

std::string check_prefix(const std::string& text) {
  if (text.empty()) return "";
  const bool plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
  });
  const bool path = text.starts_with('/') && !text.ends_with('/') && text.find("//") == std::string::npos;
  return plain && path ? "" : "must begin with a slash, not end with one, and hold letters, digits and any of - _ . ~";
}

bool has_keys(const ServeConfig& config) { return !config.api_keys.empty() || !config.api_key_file.empty(); }

}  // namespace

void add_web_options(CLI::App& app, WebOptions& options) {
  app.option_defaults()->group("Web pages");
  app.add_option(
         "--cors-origins", options.origins,
         "pages that may use the server, such as https://chat.example; localhost: those of this machine; *: all, "
         "with a key or --no-auth")
      ->envname("LLAMA_ARG_CORS_ORIGINS")
      ->delimiter(',')
      ->check(check_origin)
      ->type_name("ORIGINS");
  app.add_option("--cors-methods", options.methods, "methods that such pages may use")
      ->envname("LLAMA_ARG_CORS_METHODS")
      ->check(check_list)
      ->type_name("METHODS");
  app.add_option("--cors-headers", options.headers, "headers that such pages may send; *: any")
      ->envname("LLAMA_ARG_CORS_HEADERS")
      ->check(check_list)
      ->type_name("HEADERS");
  app.add_flag("--cors-credentials,!--no-cors-credentials", options.credentials,
               "such pages may send credentials; they may by default")
      ->envname("LLAMA_ARG_CORS_CREDENTIALS");
  app.add_option("--allowed-hosts", options.allowed_hosts,
                 "names, beside those of this machine, that a server on a loopback address without keys answers to")
      ->envname("CHASQUI_ALLOWED_HOSTS")
      ->delimiter(',')
      ->check(check_host_name)
      ->type_name("NAMES");
  app.add_option("--webui-mcp-origins", options.mcp_origins,
                 "MCP servers that the page may ask, such as http://127.0.0.1:3000; the server itself asks none")
      ->envname("CHASQUI_WEBUI_MCP_ORIGINS")
      ->delimiter(',')
      ->check(check_one_origin)
      ->type_name("ORIGINS");
  app.add_option("--api-prefix", options.api_prefix, "path under which all routes and the page live, such as /chasqui")
      ->envname("LLAMA_ARG_API_PREFIX")
      ->check(check_prefix)
      ->type_name("PATH");
  app.add_flag(
         "--compression,!--no-compression", options.compression,
         "large answers that do not stream are compressed (gzip) for clients that ask for it; they are by default")
      ->envname("CHASQUI_COMPRESSION");
}

Result<void> check_origins(const ServeConfig& config) {
  if (std::ranges::find(config.web.origins, "*") == config.web.origins.end()) return {};
  if (has_keys(config) || config.no_auth) return {};
  return invalid_field(
      "--cors-origins",
      "--cors-origins *: any web page could use this server: set --api-key, or --no-auth if every page "
      "may, or name the origins");
}

namespace {

std::vector<std::string> host_names(const ServeConfig& config) {
  std::vector<std::string> out = config.web.allowed_hosts;
  for (std::string& text : out) text = in_small_letters(text);
  return out;
}

}  // namespace

net::WebPolicy web_policy(const ServeConfig& config, const Listeners& listeners) {
  net::WebPolicy out;
  out.loopback_origins = false;
  for (const std::string& origin : config.web.origins) net::allow_origin(out, origin);
  out.methods = config.web.methods;
  out.headers = config.web.headers;
  out.credentials = config.web.credentials;
  out.keyless = !has_keys(config);
  const bool local = std::ranges::all_of(listeners.http, &net::ListenAddress::is_loopback);
  out.checks_host = out.keyless && local && !out.any_origin;
  out.hosts = host_names(config);
  return out;
}

net::WebPolicy admin_web_policy(const ServeConfig& config) {
  net::WebPolicy out;
  out.loopback_origins = false;
  out.for_operators = out.keyless = true;
  out.hosts = host_names(config);
  return out;
}

}  // namespace chasqui
