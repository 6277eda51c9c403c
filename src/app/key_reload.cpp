#include "app/key_reload.h"

#include "base/log.h"

namespace chasqui {

void KeyReload::begin() {
  again_ = true;
  if (!busy_) loop_.spawn(reload(), "key reload");
}

net::Awaitable<void> KeyReload::reload() {
  busy_ = true;
  while (again_) {
    again_ = false;
    auto work = [plain = config_.api_keys, file = config_.api_key_file] { return read_keys(plain, file); };
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
