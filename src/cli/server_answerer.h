// Answers from a running server, this one or any other with OpenAI's chat completions. See cli/answerer.h.
#pragma once

#include "cli/answerer.h"

namespace chasqui::cli {

// Asks the server for the name of its model first, where none is given.
Result<AnswererPtr> open_server(const std::string& url, const std::string& key, std::string model,
                                const AnswerSettings& settings);

}  // namespace chasqui::cli
