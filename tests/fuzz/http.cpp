// The HTTP parser: in one piece and in pieces it must see the same, and nothing beyond its limits.
#include "fuzz.h"
#include "net/http_parser.h"

namespace chasqui::net {
namespace {

struct Outcome {
  HttpRequest request;
  HttpParser::State state = HttpParser::State::head;
  int status = 0;
  std::size_t taken = 0;
};

Outcome parse(std::string_view bytes, std::size_t piece, const HttpLimits& limits) {
  Outcome out;
  HttpParser parser(limits, out.request);
  while (parser.state() != HttpParser::State::complete && parser.state() != HttpParser::State::refused) {
    if (parser.state() == HttpParser::State::head_done) {
      parser.accept_body();
      continue;
    }
    if (out.taken == bytes.size()) break;
    const std::string_view part = bytes.substr(out.taken, piece);
    const std::size_t taken = parser.feed(part);
    must(taken <= part.size(), "a parser takes what there is");
    out.taken += taken;
    const bool waits = parser.state() == HttpParser::State::head || parser.state() == HttpParser::State::body;
    must(!waits || taken == part.size(), "a parser that wants more takes everything");
  }
  out.state = parser.state();
  if (out.state == HttpParser::State::refused) out.status = parser.refusal().status;
  return out;
}

}  // namespace
}  // namespace chasqui::net

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  using namespace chasqui::net;
  if (size == 0) return 0;
  static const HttpLimits limits = [] {
    HttpLimits small;
    small.request_line_bytes = 200;
    small.header_bytes = 400;
    small.header_count = 8;
    small.body_bytes = 300;
    return small;
  }();
  const std::size_t piece = 1 + bytes[0] % 16;
  const std::string_view text = text_of(bytes + 1, size - 1);
  const Outcome whole = parse(text, text.size() + 1, limits);
  const Outcome cut = parse(text, piece, limits);
  // How much is around chunks is counted after each piece, so it depends on the pieces when that is found to be too
  // much.
  constexpr int kTooMuchAroundChunks = 431;
  if (whole.request.body.size() + cut.request.body.size() > 0 || whole.request.headers.has("Transfer-Encoding")) {
    if (whole.status == kTooMuchAroundChunks || cut.status == kTooMuchAroundChunks) return 0;
  }
  must(whole.state == cut.state && whole.status == cut.status, "the same end, however the bytes come");
  must(whole.request.body.size() <= limits.body_bytes, "a body within its limit");
  must(whole.request.headers.size() <= limits.header_count, "headers within their limit");
  must(whole.request.target.size() <= limits.request_line_bytes, "a target within its limit");
  if (whole.state == HttpParser::State::refused) return 0;
  must(whole.taken == cut.taken, "a request ends where it ends");
  must(whole.request.target == cut.request.target && whole.request.path == cut.request.path, "the same target");
  must(whole.request.body == cut.request.body, "the same body");
  must(whole.request.path.find('\0') == std::string::npos, "no path has a NUL");
  return 0;
}
