#include "cli/chat.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include <unistd.h>

#include "cli/chat_input.h"
#include "cli/line_editor.h"
#include "cli/markdown_view.h"
#include "cli/terminal.h"
#include "cli/word_wrap.h"

namespace chasqui::cli {
namespace {

constexpr int kInterrupted = 130;  // as shells have it
constexpr std::size_t kFileMax = 64 << 20;

std::string in_words(const AnswerReport& report) {
  const double after_first = report.total_s - report.first_token_s;
  const double rate = report.completion_tokens > 1 && after_first > 0
                          ? static_cast<double>(report.completion_tokens - 1) / after_first
                          : 0;
  char text[256];
  std::snprintf(text, sizeof text,
                "%lld tokens in, %lld of them known; %lld out, first after %.0f ms, then %.1f a second",
                static_cast<long long>(report.prompt_tokens), static_cast<long long>(report.cached_tokens),
                static_cast<long long>(report.completion_tokens), report.first_token_s * 1000, rate);
  return text;
}

class Chat {
 public:
  Chat(Answerer& answerer, const ChatOptions& options)
      : answerer_(answerer),
        shows_(is_terminal(STDOUT_FILENO)),
        formats_(shows_colours(STDOUT_FILENO) && !options.plain),
        paint_(shows_colours(STDOUT_FILENO)),
        faults_(shows_colours(STDERR_FILENO)) {
    conversation_.set_system(options.system);
  }

  int one(std::string question);
  int many(const std::string& history_file);

 private:
  bool ask(std::string question);
  bool obey(const ChatInput& input);  // false: leave
  void save(const std::string& path);
  void load(const std::string& path);
  void show_stats();
  void show(std::string_view text, std::string_view paint = {});
  void complain(const std::string& what);
  void note(const std::string& what);

  Answerer& answerer_;
  const bool shows_;    // on a terminal, which obeys control characters
  const bool formats_;  // … and shows Markdown
  const Paint paint_;
  const Paint faults_;
  Conversation conversation_;
  AnswerReport last_;
  std::int64_t answers_ = 0, tokens_in_ = 0, tokens_out_ = 0;
};

void Chat::show(std::string_view text, std::string_view paint) {
  if (!shows_) {
    write_out(text);
    return;
  }
  std::string out(paint);
  out += harmless(text);
  if (!paint.empty()) out += paint_.off;
  write_out(out);
}

void Chat::complain(const std::string& what) {
  write_error(std::string(faults_.red) + "chasqui chat: " + harmless(what) + std::string(faults_.off) + "\n");
}

void Chat::note(const std::string& what) {
  write_out(std::string(paint_.dim) + harmless(what) + std::string(paint_.off) + "\n");
}

bool Chat::ask(std::string question) {
  conversation_.ask(std::move(question));
  SignalWatch::forget_interrupt();
  bool line_open = false;
  bool thinking = false;
  WordWrap wrap(static_cast<std::size_t>(terminal_size(STDOUT_FILENO).columns));
  MarkdownView markdown(paint_);
  const auto show_answer = [&](std::string_view text) {
    if (!shows_) return write_out(text);
    const std::string safe = harmless(text);
    write_out(wrap.feed(formats_ ? markdown.feed(safe) : safe));
  };
  AnswerSinks sinks;
  sinks.text = [&](std::string_view text) {
    if (std::exchange(thinking, false)) {
      show(wrap.end(), paint_.dim);
      write_out(wrap.feed("\n"));
    }
    show_answer(text);
    line_open = !text.ends_with('\n');
  };
  sinks.reasoning = [&](std::string_view text) {
    if (!shows_) return;  // a pipe gets the answer only
    show(wrap.feed(harmless(text)), paint_.dim);
    thinking = line_open = true;
  };
  sinks.stopped = [] { return SignalWatch::interrupted(); };
  const auto report = answerer_.answer(conversation_, sinks);
  if (formats_ && !thinking) write_out(wrap.feed(markdown.end()));
  if (thinking) {
    show(wrap.end(), paint_.dim);
  } else {
    write_out(wrap.end());
  }
  if (line_open) write_out("\n");
  if (!report) {
    conversation_.take_back();
    complain(report.error().message);
    return false;
  }
  last_ = *report;
  ++answers_;
  tokens_in_ += report->prompt_tokens;
  tokens_out_ += report->completion_tokens;
  if (report->stopped && report->text.empty()) {
    conversation_.take_back();  // nothing was said
  } else {
    conversation_.answered(report->text);
  }
  if (!shows_) return true;
  if (report->stopped) note("[interrupted]");
  if (report->finish_reason == "length") note("[ended by the limit of tokens or of the context]");
  return true;
}

int Chat::one(std::string question) {
  if (read_input(question).kind == ChatInput::Kind::nothing) {
    complain("there is no question");
    return 1;
  }
  if (!ask(std::move(question))) return 1;
  return last_.stopped ? kInterrupted : 0;
}

void Chat::save(const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  file << conversation_.to_json();
  file.close();
  if (!file) return complain("cannot write " + path);
  note(std::to_string(conversation_.size()) + " messages saved in " + path);
}

void Chat::load(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  char block[16384];
  while (file && text.size() <= kFileMax) {
    file.read(block, sizeof block);
    text.append(block, static_cast<std::size_t>(file.gcount()));
  }
  if (text.empty() || text.size() > kFileMax) return complain("cannot read " + path);
  if (auto loaded = conversation_.from_json(text); !loaded) return complain(path + ": " + loaded.error().message);
  note(std::to_string(conversation_.size()) + " messages loaded from " + path);
}

void Chat::show_stats() {
  note("model: " + answerer_.model_name());
  note("conversation: " + std::to_string(conversation_.size()) + " messages" +
       (conversation_.system().empty() ? "" : " and a system message"));
  if (answers_ == 0) return note("no answer yet");
  note("last answer: " + in_words(last_));
  note("since the start: " + std::to_string(answers_) + " answers, " + std::to_string(tokens_in_) + " tokens in, " +
       std::to_string(tokens_out_) + " out");
}

bool Chat::obey(const ChatInput& input) {
  switch (input.kind) {
    case ChatInput::Kind::nothing: break;
    case ChatInput::Kind::text: ask(input.text); break;
    case ChatInput::Kind::system:
      conversation_.set_system(input.text);
      note(input.text.empty() ? "no system message" : "system message set");
      break;
    case ChatInput::Kind::save: save(input.text); break;
    case ChatInput::Kind::load: load(input.text); break;
    case ChatInput::Kind::stats: show_stats(); break;
    case ChatInput::Kind::help: write_out(chat_help()); break;
    case ChatInput::Kind::clear:
      conversation_.clear();
      note("forgotten");
      break;
    case ChatInput::Kind::quit: return false;
    case ChatInput::Kind::mistake: complain(input.text); break;
  }
  return true;
}

int Chat::many(const std::string& history_file) {
  note("chatting with " + answerer_.model_name() + "; /help shows what else there is");
  LineEditor editor(history_file, commands_that_begin_with);
  LineJoiner joiner;
  bool interrupted_before = false;
  for (;;) {
    std::string line;
    const LineEditor::End end = editor.read(joiner.wants_more() ? "... " : "> ", line);
    if (end == LineEditor::End::closed) {
      write_out("\n");
      return 0;
    }
    if (end == LineEditor::End::interrupted) {
      write_out("^C\n");
      joiner.drop();
      if (std::exchange(interrupted_before, true)) return 0;
      note("once more to leave");
      continue;
    }
    interrupted_before = false;
    editor.remember(line);
    const std::optional<std::string> whole = joiner.take(line);
    if (whole && !obey(read_input(*whole))) return 0;
  }
}

std::string standard_input() {
  std::string text;
  char block[16384];
  while (text.size() <= kFileMax) {
    const std::size_t n = std::fread(block, 1, sizeof block, stdin);
    if (n == 0) break;
    text.append(block, n);
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

int chat(Answerer& answerer, const ChatOptions& options) {
  const SignalWatch signals;
  Chat chat(answerer, options);
  if (!options.question.empty()) return chat.one(options.question);
  if (!is_terminal(STDIN_FILENO)) return chat.one(standard_input());
  return chat.many(options.history_file);
}

std::string default_history_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return std::string(state) + "/chasqui/chat_history";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr || *home != '/' ? std::string() : std::string(home) + "/.local/state/chasqui/chat_history";
}

}  // namespace chasqui::cli
