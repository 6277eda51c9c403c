// Puts libllama's log back together: it arrives in pieces, and a piece that continues a line says so instead of
// repeating its level. One per thread, so that lines of two threads cannot mix.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace chasqui {

class LlamaLog {
 public:
  using Sink = std::function<void(LogLevel level, std::string_view line)>;

  explicit LlamaLog(Sink sink) : sink_(std::move(sink)) {}

  // A piece of text at `level`; without a level it continues the line before it.
  void feed(LogLevel level, std::string_view piece);
  void continue_line(std::string_view piece);

 private:
  void finish_line();

  const Sink sink_;
  std::string line_;
  LogLevel level_ = LogLevel::info;
};

}  // namespace chasqui
