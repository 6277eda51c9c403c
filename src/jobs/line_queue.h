// A queue of lines of batches that nodes share, in a broker: Redis or NATS. Lines go to any node, results to the home
// of the line. Owned and used by the thread of the queue (app/queue_thread) through a QueueTurn; every call blocks, at
// most for the patience of the implementation.
//
// What was acknowledged here stays until it is taken and done, as far as the broker keeps its word; what was taken and
// is not kept alive goes to another node after kQueueIdle. So everything may come more than once, and the home drops
// what it has. A line that waits already is not sent again.
//
// Errors: unavailable where the broker does not answer, or not as it should; then it is not known what was done. open()
// connects again, and makes again what a broker without its data lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "jobs/line_message.h"

namespace chasqui {

// How long a line that was taken may be silent.
constexpr Duration kQueueIdle = std::chrono::seconds(15);

// A line in the queue, as its home and the node that has taken it know it.
struct LinePost {
  std::string home;
  LineKey key;
  std::string message{};  // where it is to be sent
  std::string receipt{};  // of the delivery, where it was taken
};

struct TakenMessage {
  std::string receipt;
  std::uint64_t deliveries = 1;  // so far, with this one
  std::string message;
};

enum class Posted { yes, already, too_large };

class LineQueue {
 public:
  virtual ~LineQueue() = default;

  // Where it is, without passwords, for messages.
  virtual std::string shown() const = 0;
  // REQUIRES: called first, with the name of this node, which it keeps when it is started again
  virtual void be(std::string home) = 0;
  // That everything is there. Also after an error.
  virtual Result<void> open() = 0;

  // As the home of lines.
  virtual Result<std::vector<Posted>> publish(std::span<const LinePost> lines) = 0;
  virtual Result<void> withdraw(std::span<const LineKey> lines) = 0;
  // Those that wait or are taken.
  virtual Result<std::vector<LineKey>> outstanding() = 0;
  // Those that have come since the last call, of so many bytes together. REQUIRES: bytes >= kSharedResultMost
  virtual Result<std::vector<TakenMessage>> results(std::size_t most, std::size_t bytes) = 0;
  // Results that have this receipt; of messages that cannot be read without a key.
  virtual Result<void> acknowledge(std::span<const LinePost> results) = 0;

  // As a node that runs lines.
  virtual Result<std::vector<TakenMessage>> take(std::size_t most) = 0;
  // Receipts of lines that are not this node's any more: they were silent for too long, or are withdrawn.
  virtual Result<std::vector<std::string>> keep(std::span<const LinePost> lines) = 0;
  // The message is the result; the line is done. too_large: nothing has changed.
  virtual Result<Posted> answer(const LinePost& line) = 0;
  // The message is the line, for other nodes.
  virtual Result<void> give_back(const LinePost& line) = 0;
  // It is gone, without a result.
  virtual Result<void> drop(const LinePost& line) = 0;
};

}  // namespace chasqui
