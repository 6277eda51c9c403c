#include "net/sse.h"

namespace chasqui::net {
namespace {

void append_one_line(std::string& out, std::string_view field, std::string_view value) {
  out += field;
  for (const char c : value) {
    if (c != '\r' && c != '\n') out += c;
  }
  out += '\n';
}

// Up to the next CR, LF or CRLF, which it takes away as well.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find_first_of("\r\n");
  const std::string_view line = rest.substr(0, end);
  if (end == std::string_view::npos) {
    rest = {};
    return line;
  }
  const bool both = rest.substr(end, 2) == "\r\n";
  rest.remove_prefix(end + (both ? 2 : 1));
  return line;
}

}  // namespace

void append_sse_event(std::string& out, std::string_view data, std::string_view event, std::string_view id) {
  if (!event.empty()) append_one_line(out, "event: ", event);
  if (!id.empty()) append_one_line(out, "id: ", id);
  // A line break at the very end makes one more, empty line: the client joins the lines with breaks between them.
  bool ended_with_break = false;
  do {
    const std::size_t before = data.size();
    const std::string_view line = take_line(data);
    ended_with_break = before > line.size();
    out += "data: ";
    out += line;
    out += '\n';
  } while (!data.empty());
  if (ended_with_break) out += "data: \n";
  out += '\n';
}

void append_sse_comment(std::string& out, std::string_view text) {
  append_one_line(out, ": ", text);
  out += '\n';
}

HttpHeaders sse_headers() {
  return HttpHeaders{{"Content-Type", "text/event-stream"},
                     {"Cache-Control", "no-cache"},
                     {"X-Accel-Buffering", "no"}};
}

}  // namespace chasqui::net
