#include "app/key_reload.h"

#include <filesystem>

#include "base/log.h"

namespace chasqui {
namespace {

// A pipe, as of --api-key-file <(…), can be read once: to open it again might wait for a writer for ever.
Result<std::vector<KeyLine>> read_again(const std::vector<std::string>& plain, const std::string& file) {
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(file, unknown);
  if (!file.empty() && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return invalid_field("--api-key-file", "--api-key-file: " + file + " is not a regular file: it is read once");
  }
  return read_keys(plain, file);
}

}  // namespace

void KeyReload::begin() {
  again_ = true;
  if (!busy_) loop_.spawn(reload(), "key reload");
}

net::Awaitable<void> KeyReload::reload() {
  busy_ = true;
  while (again_) {
    again_ = false;
    auto work = [plain = config_.api_keys, file = config_.api_key_file] { return read_again(plain, file); };
    Result<std::vector<KeyLine>> lines = co_await offload_.run(std::move(work));
    if (lines) {
      keys_.replace(*lines);
      log_info("keys reloaded", {{"keys", keys_.keys()}, {"tenants", keys_.tenants()}});
    } else {
      log_error("keys not reloaded; the old ones stay", {{"reason", lines.error().message}});
    }
  }
  busy_ = false;
}

}  // namespace chasqui
