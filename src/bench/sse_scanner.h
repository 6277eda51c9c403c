// Finds the tokens in a stream of server-sent events without parsing their JSON: it looks for the few keys that
// matter. A key is found by its closing quote and colon, which cannot stand inside a JSON string unescaped, so a
// model that writes JSON cannot deceive it. Fed in pieces of any size. One per answer; single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::bench {

// What the numbers in an answer's usage say; -1: not said.
struct Usage {
  std::int64_t prompt = -1;
  std::int64_t cached = -1;
  std::int64_t completion = -1;
};

// Takes over what this JSON says of usage.
void scan_usage(std::string_view json, Usage& usage);

class SseScanner {
 public:
  // The longest line that is kept when it comes in pieces; what is longer is a failed stream.
  static constexpr std::size_t kLineMax = 1 << 20;

  // Appends to `chunks`, for each chunk with text in it, how many tokens it is: one, or what running usage says.
  void feed(std::string_view bytes, std::vector<std::int32_t>& chunks);

  std::int64_t tokens() const { return tokens_; }
  const Usage& usage() const { return usage_; }
  bool done() const { return done_; }      // [DONE] was seen
  bool failed() const { return failed_; }  // an error came instead of an answer, or no SSE

 private:
  void take_line(std::string_view line, std::vector<std::int32_t>& chunks);

  std::string kept_;  // the beginning of an incomplete line
  std::int64_t tokens_ = 0;
  Usage usage_;
  bool done_ = false;
  bool failed_ = false;
};

}  // namespace chasqui::bench
