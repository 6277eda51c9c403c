#include "cli/terminal.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace chasqui::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;
volatile std::sig_atomic_t resizes = 0;

void on_interrupt(int) { interrupts = 1; }
void on_resize(int) { resizes = 1; }

// Without SA_RESTART: a read that waits for a key returns.
void watch(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeaveScreen = "\x1b[?25h\x1b[?1049l";
constexpr std::array kEndings = {SIGTERM, SIGHUP};

// What was before there was a screen of its own. Here for the signal handler.
termios keys_before{};
std::array<struct sigaction, kEndings.size()> endings_before{};

// Only what a signal handler may call. The signal comes again, to end the process as if this had not been there.
void on_ending(int number) {
  [[maybe_unused]] const ssize_t wrote = ::write(STDOUT_FILENO, kLeaveScreen.data(), kLeaveScreen.size());
  ::tcsetattr(STDIN_FILENO, TCSANOW, &keys_before);
  ::raise(number);
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

bool shows_colours(int fd) {
  return is_terminal(fd) && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

Size terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string harmless(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // C1: what ESC and a letter are, in one character
      out += kReplacement;
      ++i;
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      out += kReplacement;
    } else {
      out += text[i];
    }
  }
  return out;
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void write_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

SignalWatch::SignalWatch() {
  interrupts = 0;
  watch(SIGINT, &on_interrupt);
  watch(SIGWINCH, &on_resize);
}

SignalWatch::~SignalWatch() {
  watch(SIGINT, SIG_DFL);
  watch(SIGWINCH, SIG_DFL);
}

bool SignalWatch::interrupted() { return interrupts != 0; }
void SignalWatch::forget_interrupt() { interrupts = 0; }

bool SignalWatch::resized() {
  const bool was = resizes != 0;
  resizes = 0;
  return was;
}

OwnScreen::OwnScreen() {
  ::tcgetattr(STDIN_FILENO, &keys_before);
  struct sigaction ending {};
  ending.sa_handler = &on_ending;
  ending.sa_flags = SA_RESETHAND;
  ::sigemptyset(&ending.sa_mask);
  ::sigaddset(&ending.sa_mask, SIGTTOU);  // a process in the background would stop instead
  for (std::size_t i = 0; i < kEndings.size(); ++i) {
    ::sigaction(kEndings[i], nullptr, &endings_before[i]);
    if (endings_before[i].sa_handler != SIG_IGN) ::sigaction(kEndings[i], &ending, nullptr);
  }
  termios raw = keys_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_out(kEnterScreen);
}

OwnScreen::~OwnScreen() {
  write_out(kLeaveScreen);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &keys_before);
  for (std::size_t i = 0; i < kEndings.size(); ++i) ::sigaction(kEndings[i], &endings_before[i], nullptr);
}

}  // namespace chasqui::cli
