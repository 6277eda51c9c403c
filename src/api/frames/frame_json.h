// The JSON of the local socket (docs/protocol.md): what a client's frame is about, and the frames that answer it.
// Reading is pure and belongs in the offload pool for long frames; writers append to the connection's buffer, one
// prepared frame for each token. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/core/answer.h"
#include "base/error.h"

namespace chasqui {

// What has to be known of a frame before anybody reads the rest of it.
struct FrameHead {
  std::string id;        // as JSON, for the answers: "\"a1\"" or "7"
  std::string event;     // empty: a request to generate
  std::string session;   // the one that a command is about
  std::string model;     // that properties are asked of; empty: the first
  std::string metadata;  // as JSON; empty: none
  std::string limit;     // of a list, as HTTP's query has it
  std::string after;
  std::string traceparent;  // as HTTP's headers of these names
  std::string tracestate;
  bool has_limit = false;
  bool has_after = false;
  bool stream = true;
  bool chat = false;           // messages instead of a prompt
  std::optional<Error> error;  // then only `id` counts, "null" when there is none
};

FrameHead read_frame_head(std::string_view body);
// The frame that a line of a person stands for: a message of a chat, or a prompt.
std::string body_of_line(std::string_view line, bool chat);

// {"id":…,"event":"error","code":…,"message":…}
void append_error_frame(std::string& out, std::string_view id, const Error& error);
// {"id":…,"event":"result","result":…}; `json` is written as it is.
void append_result_frame(std::string& out, std::string_view id, std::string_view json);
// {"id":…,"event":"queued",…}
void append_queued_frame(std::string& out, std::string_view id, const Event& queued);
// {"id":…,"event":"eos",…} of a request that was cancelled before it began.
void append_cancelled_frame(std::string& out, const FrameHead& head);

// text() writes a token frame, end() the eos frame, whole() the eos frame of a request that does not stream.
std::unique_ptr<AnswerWriter> make_frame_writer(const FrameHead& head);
// The bytes as they are, and a line break at the end.
std::unique_ptr<AnswerWriter> make_line_writer();

}  // namespace chasqui
