#include "cli/line_editor.h"

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <filesystem>

#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/terminal.h"

namespace chasqui::cli {
namespace {

constexpr int kHistoryLines = 1000;

// libedit reads wide characters by the locale's rules. Only those of characters: numbers stay as they are in C.
void choose_characters() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineEditor::Parts {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string file;
  std::string prompt;
  Complete complete;

  static Parts& of(EditLine* editor) {
    void* parts = nullptr;
    el_get(editor, EL_CLIENTDATA, &parts);
    return *static_cast<Parts*>(parts);
  }

  static char* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }

  // A character at a time, so that Ctrl-C ends the line: libedit's own reader tries again after a signal.
  static int read_character(EditLine* editor, wchar_t* character) {
    std::mbstate_t state{};
    for (;;) {
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n == 0) return 0;
      if (n < 0) {
        if (errno != EINTR || SignalWatch::interrupted()) return -1;
        if (SignalWatch::resized()) el_resize(editor);
        continue;
      }
      const std::size_t length = std::mbrtowc(character, &byte, 1, &state);
      if (length == static_cast<std::size_t>(-2)) continue;  // there is more of it
      if (length != static_cast<std::size_t>(-1)) return 1;
      state = {};  // no character: as if it had not been typed
    }
  }

  // Inserts what all that is possible has in common.
  static unsigned char complete_line(EditLine* editor, int) {
    const LineInfo* line = el_line(editor);
    const std::string_view before(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
    const std::vector<std::string> found = of(editor).complete(before);
    if (found.empty()) return CC_ERROR;
    std::string shared = found.front();
    for (const std::string& other : found) {
      std::size_t same = 0;
      while (same < shared.size() && same < other.size() && shared[same] == other[same]) ++same;
      shared.resize(same);
    }
    if (found.size() == 1) shared += ' ';
    if (shared.size() <= before.size()) return CC_ERROR;
    el_insertstr(editor, shared.c_str() + before.size());
    return CC_REFRESH;
  }
};

LineEditor::LineEditor(std::string history_file, Complete complete) : parts_(std::make_unique<Parts>()) {
  choose_characters();
  Parts& parts = *parts_;
  parts.file = std::move(history_file);
  parts.complete = std::move(complete);
  parts.history = history_init();
  history(parts.history, &parts.event, H_SETSIZE, kHistoryLines);
  history(parts.history, &parts.event, H_SETUNIQUE, 1);
  if (!parts.file.empty()) history(parts.history, &parts.event, H_LOAD, parts.file.c_str());
  // What the editor shows is no part of the answer, which may go somewhere else.
  std::FILE* screen = is_terminal(STDOUT_FILENO) ? stdout : stderr;
  parts.editor = el_init("chasqui", stdin, screen, stderr);
  el_set(parts.editor, EL_CLIENTDATA, &parts);
  el_set(parts.editor, EL_PROMPT, &Parts::show_prompt);
  el_set(parts.editor, EL_EDITOR, "emacs");
  el_set(parts.editor, EL_SIGNAL, 0);
  el_set(parts.editor, EL_HIST, &history, parts.history);
  el_set(parts.editor, EL_GETCFN, &Parts::read_character);
  el_set(parts.editor, EL_ADDFN, "chasqui-complete", "completes a command", &Parts::complete_line);
  el_set(parts.editor, EL_BIND, "^I", "chasqui-complete", nullptr);
  el_set(parts.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(parts.editor, nullptr);  // the user's ~/.editrc
}

LineEditor::~LineEditor() {
  el_end(parts_->editor);
  history_end(parts_->history);
}

LineEditor::End LineEditor::read(std::string_view prompt, std::string& line) {
  parts_->prompt = prompt;
  SignalWatch::forget_interrupt();
  int length = 0;
  const char* text = el_gets(parts_->editor, &length);
  if (SignalWatch::interrupted()) {
    SignalWatch::forget_interrupt();
    return End::interrupted;
  }
  if (text == nullptr || length <= 0) return End::closed;
  line.assign(text, static_cast<std::size_t>(length));
  if (line.ends_with('\n')) line.pop_back();
  return End::line;
}

void LineEditor::remember(const std::string& line) {
  if (line.empty()) return;
  history(parts_->history, &parts_->event, H_ENTER, line.c_str());
  if (parts_->file.empty()) return;
  std::error_code ignored;  // a history that cannot be kept is no reason to stop
  const std::filesystem::path folder = std::filesystem::path(parts_->file).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  const mode_t before = ::umask(0077);
  history(parts_->history, &parts_->event, H_SAVE, parts_->file.c_str());
  ::umask(before);
}

}  // namespace chasqui::cli
