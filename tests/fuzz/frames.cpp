// Frames and lines of the local socket: in one piece and in pieces the same messages come out.
#include <string>
#include <vector>

#include "fuzz.h"
#include "net/frame_scanner.h"

namespace chasqui::net {
namespace {

struct Outcome {
  std::vector<std::string> messages;
  bool too_large = false;
};

Outcome scan(std::string_view bytes, std::size_t piece, const FrameLimits& limits) {
  Outcome out;
  FrameScanner scanner(limits);
  while (!bytes.empty() && !out.too_large) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    do {
      const std::size_t taken = scanner.feed(part);
      must(taken <= part.size(), "a scanner takes what there is");
      part.remove_prefix(taken);
      out.too_large = scanner.state() == FrameScanner::State::too_large;
      must(scanner.held() <= limits.frame_bytes + limits.line_bytes + 8, "no more is held than a message may have");
      if (scanner.state() == FrameScanner::State::complete) {
        out.messages.push_back(scanner.take());
      } else if (part.empty()) {
        break;
      }
    } while (!out.too_large);
  }
  return out;
}

}  // namespace
}  // namespace chasqui::net

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  using namespace chasqui::net;
  if (size == 0) return 0;
  static const FrameLimits limits = [] {
    FrameLimits small;
    small.frame_bytes = 300;
    small.line_bytes = 100;
    return small;
  }();
  const std::string_view text = text_of(bytes + 1, size - 1);
  const Outcome whole = scan(text, text.size() + 1, limits);
  const Outcome cut = scan(text, 1 + bytes[0] % 16, limits);
  must(whole.messages == cut.messages && whole.too_large == cut.too_large, "the same messages, however they come");
  for (const std::string& message : whole.messages) must(message.size() <= limits.frame_bytes, "none is too large");
  return 0;
}
