// An answer that one node has begun and another one is to go on with: what was asked, what was generated so far, and
// what the stream has told. The session itself is as it was before the answer. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/types.h"

namespace chasqui {

// The last bytes of a stream that is kept (api/delivery/stream_ring).
struct StreamEnd {
  std::uint64_t end = 0;  // bytes that it has told so far
  std::string bytes{};    // the last ones of them
};

struct MovedAnswer {
  std::string stream{};       // its name
  std::string body{};         // of the request
  std::string completion{};   // id of the answer, as the client knows it
  std::string model{};        // … and the model's name
  std::string fingerprint{};  // … and the server's
  std::int64_t created = 0;
  std::uint32_t seed = 0;
  std::uint64_t history = 0;    // tokens of the session
  std::vector<Token> tokens{};  // of the answer so far
  StreamEnd told{};
};

std::vector<std::byte> write_moved_answer(const MovedAnswer& answer);
// invalid_request: it is none.
Result<MovedAnswer> read_moved_answer(std::span<const std::byte> bytes);

}  // namespace chasqui
