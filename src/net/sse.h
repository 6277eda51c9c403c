// Server-sent events as text. Pure functions that append to a buffer the caller reuses; any thread.
#pragma once

#include <string>
#include <string_view>

#include "net/http_headers.h"

namespace chasqui::net {

// One event: `event:` and `id:` lines where given (line breaks in them are dropped), one `data:` line per line of
// `data`, and the blank line that ends it.
void append_sse_event(std::string& out, std::string_view data, std::string_view event = {}, std::string_view id = {});

// For the busy path: `data: ` … `\n\n` around text that is known to have no line breaks, such as JSON.
inline void append_sse_data_line(std::string& out, std::string_view data) {
  out += "data: ";
  out += data;
  out += "\n\n";
}

// `: text` and a blank line: keeps proxies awake, ignored by clients.
void append_sse_comment(std::string& out, std::string_view text);

// text/event-stream, not cached, not buffered by proxies.
HttpHeaders sse_headers();

}  // namespace chasqui::net
