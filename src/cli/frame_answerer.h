// Answers from a running server through its local socket, in frames (docs/protocol.md). See cli/answerer.h.
#pragma once

#include <string>

#include "cli/answerer.h"

namespace chasqui::cli {

// `path` is that of the server's --socket. Asks for the name of the model first.
Result<AnswererPtr> open_frames(const std::string& path, const AnswerSettings& settings);

}  // namespace chasqui::cli
