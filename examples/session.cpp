// libchasqui without a server: a session, two questions, a fork. Built as bin/example_session.
//   example_session [MODEL.gguf]      the built-in demo model without one
#include <cstdio>
#include <cstdlib>
#include <string>

#include <chasqui_demo_model.h>

#include "base/log.h"
#include "engine/session_engine.h"

namespace chasqui {
namespace {
void require(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

template <class T>
T require(Result<T> result) {
  if (!result) require(Result<void>(result.error()));
  return std::move(*result);
}

// Only the question goes in: the session knows what was said before.
void ask(SessionEngine& engine, const SessionId& session, const std::string& question) {
  ChatMessage message;
  message.role = "user";
  message.content = question;
  require(engine.append(session, std::move(message)));
  RequestDraft how;
  how.sampling.temperature = 0;
  how.max_tokens = 100;
  std::printf("> %s\n", question.c_str());
  const Event end = require(engine.answer(session, std::move(how), [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }));
  std::printf("\n  (%d tokens in, %d of them known)\n", end.usage.prompt, end.usage.cached);
}

void run(LoadedModel model) {
  const auto engine = require(SessionEngine::open(std::move(model)));
  const SessionId session = require(engine->create());
  ask(*engine, session, "What is Chasqui?");
  const SessionId fork = require(engine->fork(session));
  ask(*engine, session, "What is a slot?");
  ask(*engine, fork, "Who are you?");
  require(engine->end(fork));
  require(engine->end(session));
}
}  // namespace
}  // namespace chasqui

int main(int argc, char** argv) {
  chasqui::configure_log(chasqui::LogLevel::warning, chasqui::LogFormat::text);
  chasqui::run(chasqui::require(argc > 1 ? chasqui::load_llama(argv[1])
                                         : chasqui::load_llama(chasqui::demo_model(), "chasqui-demo")));
}
