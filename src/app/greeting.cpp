#include "app/greeting.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "api/core/key_list.h"
#include "base/limits.h"
#include "base/text_file.h"

namespace chasqui {
namespace {

// Set by hand: keys from a command line or a TOML file are where no shell finds them, and of a hash nothing is known.
constexpr std::string_view kKeyByHand = "$API_KEY";

// As one word of sh.
std::string word_of_shell(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

// The first key of LLAMA_API_KEY, behind which others and options may stand. Empty: it has none that can be sent.
std::string key_of_environment(const ServeConfig& config) {
  if (!config.keys_from_environment || config.api_keys.empty()) return "";
  const std::string& first = config.api_keys.front();
  const std::size_t end = first.find_first_of(" \t\r");
  if (end == 0 || !has_plain_key(first)) return "";
  const bool alone = end == std::string::npos && config.api_keys.size() == 1;
  return alone ? "$LLAMA_API_KEY" : "${LLAMA_API_KEY%%[[:space:],]*}";
}

// The first key of the file, as api/core/key_list reads it. Empty: there are hashes only, or it is a pipe, which can be
// read once.
std::string key_of_file(const std::string& name) {
  std::error_code error;
  if (name.empty() || !std::filesystem::is_regular_file(name, error)) return "";
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  const std::optional<std::string> text = read_text_file(name, kSizeLimit<"key_file_bytes">);
  if (error || !text || !has_plain_key(*text)) return "";
  // No exclamation mark: in double quotes an interactive shell takes it for its history.
  return R"($(awk '/^[ \t]*sha256:/ {next} /^[ \t]*[^ \t\r#]/ {gsub(/\r/, " "); print $1; exit}' )" +
         word_of_shell(path.string()) + ")";
}

// What stands behind "Bearer" within double quotes; empty: no key is needed.
std::string key_for_shell(const ServeConfig& config) {
  if (config.api_keys.empty() && config.api_key_file.empty()) return "";
  std::string key = key_of_environment(config);
  if (key.empty()) key = key_of_file(config.api_key_file);
  return key.empty() ? std::string(kKeyByHand) : key;
}

}  // namespace

std::string request_to_try(const ServeConfig& config, const std::string& url, bool tls) {
  const std::string key = key_for_shell(config);
  const bool demo = config.engine == EngineKind::llama && config.model_path.empty();
  const std::string question = demo ? "What is Chasqui?" : "Say hello in three languages.";
  std::string out;
  if (key == kKeyByHand) out += "for the next command, type one of the keys into a variable: read -r API_KEY\n";
  // A certificate for a name does not fit an address.
  out += std::string("try: curl -N") + (tls ? "k " : " ") + url + "/v1/chat/completions";
  if (!key.empty()) out += " -H \"Authorization: Bearer " + key + '"';
  return out + " -d '{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"" + question + "\"}]}'\n";
}

}  // namespace chasqui
