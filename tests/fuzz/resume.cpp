// Streams that are kept, and where readers go on with them: a script of events that are written and offsets that are
// asked for. Whatever offset is granted gives the bytes that were written there; ids are the offsets behind their
// events.
#include <algorithm>
#include <string>

#include "api/delivery/stream_offset.h"
#include "fuzz.h"

namespace chasqui {
namespace {

// Each event ends with its id, which is where it ends in the stream.
void check_ids(const std::string& all) {
  std::size_t begin = 0;
  while (begin < all.size()) {
    const std::size_t end = all.find("\n\n", begin) + 2;
    const std::string_view event = std::string_view(all).substr(begin, end - begin);
    if (!event.starts_with(':')) {
      const std::size_t at = event.rfind("\nid: ");
      must(at != std::string_view::npos, "each event has an id");
      must(std::to_string(end) + "\n\n" == event.substr(at + 5), "… that says where it ends");
    }
    begin = end;
  }
}

}  // namespace
}  // namespace chasqui

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  if (size == 0) return 0;
  StreamRing ring(1 + bytes[0] % 64 * 7);
  std::string all;  // what an endless memory would hold
  std::string_view script = text_of(bytes + 1, size - 1);
  while (!script.empty()) {
    const std::string_view line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(line.size() + 1, script.size()));
    if (line.starts_with('?')) {
      const auto from = read_stream_offset(line.substr(1), "Last-Event-ID", ring);
      if (!from) {
        must(!from.error().message.empty(), "a refusal says why");
        continue;
      }
      std::string read;
      ring.copy(*from, line.size() * 3, read);
      must(read == std::string_view(all).substr(*from, line.size() * 3), "a reader sees what was written there");
      continue;
    }
    const std::size_t before = all.size();
    const std::string frame = (line.starts_with(':') ? std::string(line) : "data: " + std::string(line)) + "\n\n";
    append_with_ids(frame, before, all);
    ring.append(std::string_view(all).substr(before));
    must(ring.end() == all.size() && ring.begin() <= ring.end(), "offsets count all bytes");
  }
  check_ids(all);
  return 0;
}
