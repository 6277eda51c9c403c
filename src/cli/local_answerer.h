// Answers from a model in this process: a session of libchasqui, so that each question costs only what is new. See
// cli/answerer.h.
#pragma once

#include "cli/answerer.h"
#include "engine/session_engine.h"

namespace chasqui::cli {

Result<AnswererPtr> open_local(LoadedModel model, SessionEngineConfig config, const AnswerSettings& settings);

}  // namespace chasqui::cli
