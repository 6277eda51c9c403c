// What a model writes to parts of an answer: content, reasoning and tool calls. An AnswerFormat is made with the prompt
// (it depends on the template and the tools of the request), is const and may be shared; an AnswerParser reads one
// answer, on one thread at a time.
//
// incremental: the deltas, joined, are the same however the text was cut into pieces, and what one token costs does not
// grow with the answer. bytes_parsed() counts the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui {

struct AnswerDelta {
  enum class Kind {
    content,
    reasoning,
    call_begin,      // a tool call: `call`, `name` and `id`; its arguments follow
    call_arguments,  // more JSON text of the arguments of `call`
  };

  Kind kind = Kind::content;
  std::string text;      // content, reasoning, call_arguments
  std::size_t call = 0;  // index among the calls of the answer, from 0
  std::string name;
  std::string id;  // as the model wrote it; empty where its format has none
};

class AnswerParser {
 public:
  virtual ~AnswerParser() = default;

  // Appends to `out` what `text` has made certain. REQUIRES: whole UTF-8 characters, finish() not called.
  virtual void push(std::string_view text, std::vector<AnswerDelta>& out) = 0;
  // The answer has ended: what was held back because it might have become a marker is text after all.
  virtual void finish(std::vector<AnswerDelta>& out) = 0;

  virtual std::uint64_t bytes_parsed() const = 0;
};

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  virtual std::unique_ptr<AnswerParser> make_parser() const = 0;
};
using AnswerFormatPtr = std::shared_ptr<const AnswerFormat>;

}  // namespace chasqui
