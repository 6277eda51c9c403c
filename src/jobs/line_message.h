// What nodes tell each other through the queue of --batch-queue: a line that is to be run, and what it has come to.
// Pure; any thread. Nothing that a broker hands over is trusted: what is not as it was written is no message.
//
//   at  bytes
//    0      4  magic, which says the kind and the version
//    4     16  checksum (XXH3) of all behind it
//   20      …  numbers of 8 bytes, texts with their size in 4
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace chasqui {

// Of one node, a line has one name, however often it is sent.
struct LineKey {
  std::string batch;
  std::uint32_t line = 0;

  auto operator<=>(const LineKey&) const = default;
  // "batch_4fGh….17", of letters, digits, '_', '-' and the '.'.
  std::string text() const { return batch + '.' + std::to_string(line); }
};
std::optional<LineKey> read_line_key(std::string_view text);

struct SharedLine {
  std::string home;  // the node that its batch was made at
  LineKey key{};
  std::string endpoint;
  std::uint64_t owner = 0;         // the tenant's lasting name
  std::int64_t expires = 0;        // Unix time
  std::int64_t refused_since = 0;  // … when a node has first not known its tenant or its model; 0: none has said so
  std::uint32_t losses = 0;        // nodes that took it and were not heard of again
  std::string body;                // JSON
};

// The status of a line that is `refused` although it was answered: no broker takes the answer. Its home runs it again.
constexpr std::int32_t kResultTooLarge = 413;

enum class LineEnd : std::uint32_t {
  answered = 1,  // as its route does; the home may try again what the server failed to answer
  refused = 2,   // no node knows its tenant or its model: the home has to run it
  lost = 3,      // as answered, and not to be tried again
};

struct SharedResult {
  LineKey key{};
  LineEnd end = LineEnd::answered;
  std::int32_t status = 0;
  std::string request_id;
  std::string body;  // JSON
};

// Of a line, and of a result. Larger ones are not sent, and not read.
constexpr std::size_t kSharedLineMost = kSizeLimit<"batch_line_bytes"> + (1 << 12);
constexpr std::size_t kSharedResultMost = kSizeLimit<"body_bytes"> + (1 << 12);

std::string write_message(const SharedLine& line);
std::string write_message(const SharedResult& result);
// Nothing where it is no such message.
std::optional<SharedLine> read_shared_line(std::string_view message);
std::optional<SharedResult> read_shared_result(std::string_view message);

// Names of nodes and batches: 1 to 64 letters, digits, '_' and '-'. They are parts of keys and subjects.
bool is_queue_name(std::string_view text);

}  // namespace chasqui
