#include "store/line_queue_choice.h"

#include <utility>

#include "store/nats_line_queue.h"
#include "store/redis_line_queue.h"

namespace chasqui::store {
namespace {

// A server that ends while its broker hangs waits for one such call.
constexpr Duration kQueuePatience = std::chrono::seconds(1);

bool is_nats(const std::string& url) { return url.starts_with("nats://"); }

}  // namespace

Result<void> check_line_queue(const std::string& url) {
  const bool redis = url.starts_with("redis://") || url.starts_with("unix://");
  if (!redis && !is_nats(url)) {
    return invalid_field("--batch-queue",
                         "--batch-queue is redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], unix:///PATH for a socket of "
                         "Redis, or nats://[USER:PASSWORD@]HOST[:PORT]");
  }
  if (redis) {
    const auto address = read_redis_address(url);
    if (!address) return invalid_field("--batch-queue", "--batch-queue: " + address.error().message);
    return {};
  }
  const auto address = read_nats_address(url);
  if (!address) return invalid_field("--batch-queue", "--batch-queue: " + address.error().message);
  const auto library = nats_library();
  if (!library) return invalid_field("--batch-queue", "--batch-queue: " + library.error().message);
  return {};
}

std::unique_ptr<LineQueue> make_line_queue(const std::string& url, const Clock& clock) {
  if (is_nats(url)) return std::make_unique<NatsLineQueue>(**nats_library(), *read_nats_address(url), kQueuePatience);
  return std::make_unique<RedisLineQueue>(*read_redis_address(url), kQueuePatience, clock);
}

}  // namespace chasqui::store
