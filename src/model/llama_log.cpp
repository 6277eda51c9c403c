#include "model/llama_log.h"

namespace chasqui {

void LlamaLog::feed(LogLevel level, std::string_view piece) {
  // A new level in the middle of a line: the line before it was left without a newline.
  finish_line();
  level_ = level;
  continue_line(piece);
}

void LlamaLog::continue_line(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (end == std::string_view::npos) return;
    finish_line();
    piece.remove_prefix(end + 1);
  }
}

void LlamaLog::finish_line() {
  while (!line_.empty() && (line_.back() == ' ' || line_.back() == '\r')) line_.pop_back();
  if (!line_.empty()) sink_(level_, line_);
  line_.clear();
}

}  // namespace chasqui
