// Lines typed at a terminal, with editing, history and completion: libedit behind our own face. Owns the terminal's
// mode while it reads. Needs a SignalWatch. One at a time; the main thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::cli {

class LineEditor {
 public:
  using Complete = std::function<std::vector<std::string>(std::string_view line)>;

  // An empty name: a history of this run only. The file is for its user alone.
  LineEditor(std::string history_file, Complete complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class End { line, interrupted, closed };
  // `line` is without its end.
  End read(std::string_view prompt, std::string& line);
  void remember(const std::string& line);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace chasqui::cli
