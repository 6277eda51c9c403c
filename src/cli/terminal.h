// What the terminal is and may be shown: its size, whether it has colours, signals that come from it, and text of
// strangers made harmless. Standard streams only; the main thread.
#pragma once

#include <string>
#include <string_view>

namespace chasqui::cli {

bool is_terminal(int fd);
// A terminal, and neither NO_COLOR nor TERM=dumb is against it.
bool shows_colours(int fd);

struct Size {
  int columns = 80;
  int rows = 24;
};
Size terminal_size(int fd);

// Colours of one stream; empty strings where there are none.
struct Paint {
  explicit Paint(bool on)
      : dim(on ? "\x1b[2m" : ""),
        bold(on ? "\x1b[1m" : ""),
        italic(on ? "\x1b[3m" : ""),
        red(on ? "\x1b[31m" : ""),
        green(on ? "\x1b[32m" : ""),
        yellow(on ? "\x1b[33m" : ""),
        cyan(on ? "\x1b[36m" : ""),
        off(on ? "\x1b[0m" : "") {}
  std::string_view dim, bold, italic, red, green, yellow, cyan, off;
};

// Without what could move the cursor, name the window or answer in the user's place: control characters but ends of
// lines and tabs become U+FFFD.
std::string harmless(std::string_view text);

// Writes everything, to a stream that may be a pipe whose reader has gone.
void write_out(std::string_view text);
void write_error(std::string_view text);

// Ctrl-C is counted instead of ending the process, and changes of the window's size are noticed, while one lives.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  static bool interrupted();
  static void forget_interrupt();
  // True once for each change.
  static bool resized();
};

// Keys come one by one and unseen, on a screen of its own, while it lives; as before afterwards, also where SIGTERM or
// SIGHUP ends the process. Standard streams, which are terminals; one at a time.
class OwnScreen {
 public:
  OwnScreen();
  ~OwnScreen();
  OwnScreen(const OwnScreen&) = delete;
  OwnScreen& operator=(const OwnScreen&) = delete;
};

}  // namespace chasqui::cli
