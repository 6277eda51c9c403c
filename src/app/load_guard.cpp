#include "app/load_guard.h"

#include <csignal>

#include <unistd.h>

#include "base/log_sink.h"

namespace chasqui {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;  // for the handler, should the other one be full
alignas(16) char handler_stack[kStackBytes];
std::string last_words;  // written before the signals can come

// Only what a signal handler may do.
void give_up(int) {
  flush_log();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, last_words.data(), last_words.size());
  ::_exit(1);
}

}  // namespace

LoadGuard::LoadGuard(const std::string& model) {
  last_words = "chasqui: Cannot load the model " + model + ": libllama failed on it. The file is broken.\n";
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  ::sigaltstack(&stack, nullptr);
  deadly_signals_.emplace(&give_up, static_cast<int>(SA_ONSTACK), DeadlySignals::Which::all);
}

}  // namespace chasqui
