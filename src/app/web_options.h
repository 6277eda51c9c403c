// What web pages may do with the server: CORS in llama-server's words, names that it answers to, a prefix of its paths.
// A plain value, constant after start.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "net/web_policy.h"

namespace CLI {
class App;
}

namespace chasqui {

struct ServeConfig;
struct Listeners;

struct WebOptions {
  std::vector<std::string> origins = {"localhost"};
  std::string methods = net::WebPolicy().methods;
  std::string headers = net::WebPolicy().headers;
  bool credentials = net::WebPolicy().credentials;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> mcp_origins;  // of MCP servers that the page may ask
  std::string api_prefix;   // "/chasqui"; empty: none
  bool compression = true;  // of answers whose clients ask for it
};

void add_web_options(CLI::App& app, WebOptions& options);

// An error where everybody's pages could use a server that everybody may use.
Result<void> check_origins(const ServeConfig& config);
net::WebPolicy web_policy(const ServeConfig& config, const Listeners& listeners);
// … and that of the admin listener: no other origin's pages, whatever the flags say of clients.
net::WebPolicy admin_web_policy(const ServeConfig& config);

}  // namespace chasqui
