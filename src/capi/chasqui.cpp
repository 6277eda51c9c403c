#include "capi/chasqui.h"

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "api/openai/completions.h"
#include "capi/open_engine.h"
#include "capi/settings.h"

struct chasqui_engine {
  std::unique_ptr<chasqui::OpenEngine> open;
};

namespace chasqui {
namespace {

thread_local std::string last_error;

chasqui_status fail(chasqui_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

// Runs what gives a Result<void>; nothing that it throws gets out.
template <class Function>
chasqui_status guarded(const Function& function) noexcept {
  try {
    const Result<void> done = function();
    return done ? CHASQUI_OK : fail(status_of(done.error().code), done.error().message.c_str());
  } catch (const std::bad_alloc&) {
    return fail(CHASQUI_INTERNAL, "there is not enough memory");
  } catch (const std::exception& exception) {
    return fail(CHASQUI_INTERNAL, exception.what());
  } catch (...) {
    return fail(CHASQUI_INTERNAL, "something was thrown that is no exception");
  }
}

// None of those may be null.
template <class... Pointers>
bool all_there(const Pointers*... pointers) {
  return (... && (pointers != nullptr));
}

Error null_argument() { return {ErrorCode::invalid_request, "an argument that must be there is NULL", ""}; }

void give_number(std::uint64_t number, uint64_t* request) {
  if (request != nullptr) *request = number;
}

Result<void> begin(chasqui_engine* engine, PrepareAnswer prepare, const char* body, uint64_t* request) {
  if (!all_there(engine, body)) return null_argument();
  const auto number = engine->open->begin(prepare, body);
  if (!number) return number.error();
  give_number(*number, request);
  return {};
}

Result<void> give_session(const Result<SessionId>& session, char* out) {
  if (!session) return session.error();
  const std::string& id = session->text;
  CHECK(id.size() < CHASQUI_SESSION_BYTES, "ids of sessions have one length");
  std::memcpy(out, id.c_str(), id.size() + 1);
  return {};
}

// Once, before threads of engines log.
void begin_log(LogLevel level) {
  [[maybe_unused]] static const bool begun = (configure_log(level, LogFormat::text), true);
}

}  // namespace
}  // namespace chasqui

using chasqui::Result;
using chasqui::SessionId;

const char* chasqui_version(void) { return CHASQUI_VERSION; }

uint32_t chasqui_abi(void) { return CHASQUI_ABI; }

const char* chasqui_error(void) { return chasqui::last_error.c_str(); }

chasqui_status chasqui_open(const char* settings, chasqui_engine** engine) {
  return chasqui::guarded([&]() -> Result<void> {
    if (engine == nullptr) return chasqui::null_argument();
    *engine = nullptr;
    auto read = chasqui::read_engine_settings(settings != nullptr ? settings : "{}");
    if (!read) return read.error();
    chasqui::begin_log(read->log);
    auto opened = chasqui::OpenEngine::open(std::move(*read));
    if (!opened) return opened.error();
    *engine = std::make_unique<chasqui_engine>(chasqui_engine{std::move(*opened)}).release();
    return {};
  });
}

void chasqui_close(chasqui_engine* engine) {
  (void)chasqui::guarded([&]() -> Result<void> {
    const std::unique_ptr<chasqui_engine> owner(engine);
    return {};
  });
}

chasqui_status chasqui_chat(chasqui_engine* engine, const char* body, uint64_t* request) {
  return chasqui::guarded([&] { return chasqui::begin(engine, &chasqui::prepare_chat, body, request); });
}

chasqui_status chasqui_complete(chasqui_engine* engine, const char* body, uint64_t* request) {
  return chasqui::guarded([&] { return chasqui::begin(engine, &chasqui::prepare_completion, body, request); });
}

chasqui_status chasqui_cancel(chasqui_engine* engine, uint64_t request) {
  return chasqui::guarded([&]() -> Result<void> {
    if (engine == nullptr) return chasqui::null_argument();
    return engine->open->cancel(request);
  });
}

chasqui_status chasqui_session_create(chasqui_engine* engine, const char* body, char session[CHASQUI_SESSION_BYTES]) {
  return chasqui::guarded([&]() -> Result<void> {
    if (!chasqui::all_there(engine, session)) return chasqui::null_argument();
    return chasqui::give_session(engine->open->create_session(body != nullptr ? body : "{}"), session);
  });
}

chasqui_status chasqui_session_append(chasqui_engine* engine, const char* session, const char* body) {
  return chasqui::guarded([&]() -> Result<void> {
    if (!chasqui::all_there(engine, session, body)) return chasqui::null_argument();
    return engine->open->append(SessionId{session}, body);
  });
}

chasqui_status chasqui_session_generate(chasqui_engine* engine, const char* session, const char* body,
                                        uint64_t* request) {
  return chasqui::guarded([&]() -> Result<void> {
    if (!chasqui::all_there(engine, session)) return chasqui::null_argument();
    const auto number = engine->open->generate(SessionId{session}, body != nullptr ? body : "{}");
    if (!number) return number.error();
    chasqui::give_number(*number, request);
    return {};
  });
}

chasqui_status chasqui_session_fork(chasqui_engine* engine, const char* session, char fork[CHASQUI_SESSION_BYTES]) {
  return chasqui::guarded([&]() -> Result<void> {
    if (!chasqui::all_there(engine, session, fork)) return chasqui::null_argument();
    return chasqui::give_session(engine->open->fork(SessionId{session}), fork);
  });
}

chasqui_status chasqui_session_end(chasqui_engine* engine, const char* session) {
  return chasqui::guarded([&]() -> Result<void> {
    if (!chasqui::all_there(engine, session)) return chasqui::null_argument();
    return engine->open->end_session(SessionId{session});
  });
}

size_t chasqui_running(const chasqui_engine* engine) { return engine != nullptr ? engine->open->running() : 0; }

int chasqui_fd(const chasqui_engine* engine) { return engine != nullptr ? engine->open->fd() : -1; }

const chasqui_event* chasqui_next(chasqui_engine* engine, int timeout_ms) {
  const chasqui_event* event = nullptr;
  (void)chasqui::guarded([&]() -> Result<void> {
    if (engine == nullptr) return chasqui::null_argument();
    event = engine->open->next(timeout_ms);
    return {};
  });
  return event;
}

chasqui_status chasqui_run(chasqui_engine* engine, chasqui_callback callback, void* user) {
  return chasqui::guarded([&]() -> Result<void> {
    if (engine == nullptr || callback == nullptr) return chasqui::null_argument();
    while (const chasqui_event* const event = engine->open->next(-1)) {
      if (callback(user, event) != 0) break;
    }
    return {};
  });
}

chasqui_kind chasqui_event_kind(const chasqui_event* event) { return event->kind; }

uint64_t chasqui_event_request(const chasqui_event* event) { return event->request; }

const char* chasqui_event_json(const chasqui_event* event) { return event->json.c_str(); }

const char* chasqui_event_text(const chasqui_event* event, size_t* bytes) {
  if (bytes != nullptr) *bytes = event->text.size();
  return event->text.c_str();
}

chasqui_status chasqui_event_status(const chasqui_event* event) { return event->status; }

int64_t chasqui_event_tokens(const chasqui_event* event, chasqui_tokens which) {
  switch (which) {
    case CHASQUI_TOKENS_PROMPT: return event->usage.prompt;
    case CHASQUI_TOKENS_CACHED: return event->usage.cached;
    case CHASQUI_TOKENS_ANSWER: return event->usage.completion;
  }
  return 0;
}
