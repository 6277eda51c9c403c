// `chasqui chat`: a conversation at a terminal, or one question from the command line or a pipe. Blocks; the main
// thread.
#pragma once

#include <string>

#include "cli/answerer.h"

namespace chasqui::cli {

struct ChatOptions {
  std::string question;  // one, and out; empty: standard input says it, or the user at the terminal
  std::string system;
  std::string history_file;  // empty: nothing is kept
  bool plain = false;        // Markdown as the model writes it
};

// The process's exit code: 0, 1 when there was no answer, 130 when one was interrupted that could not be asked again.
int chat(Answerer& answerer, const ChatOptions& options);

// Where a history goes by default: under XDG_STATE_HOME or ~/.local/state; empty when there is no home.
std::string default_history_file();

}  // namespace chasqui::cli
