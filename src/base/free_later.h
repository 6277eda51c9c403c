// Where something goes that takes long to free, such as the thousands of messages of a history: its last owner hands it
// over, and another thread frees it (net/freeing_queue). On the thread of the owner.
#pragma once

#include <functional>
#include <memory>

namespace chasqui {

using FreeLater = std::function<void(std::shared_ptr<const void>)>;

// For programs without a loop that would wait.
inline void free_now(std::shared_ptr<const void> /*thing*/) {}

}  // namespace chasqui
