/* chasqui.h: Chasqui's engine for programs in C, and in any language that can call C: a model in this process, chats,
 * completions and sessions with the JSON fields of the HTTP API (docs/api.md), their answers as events. No server, no
 * sockets. examples/session.c and examples/session.py show all of it; docs/library.md describes it.
 *
 *   chasqui_open() -> chasqui_chat() -> chasqui_next() ... until its event CHASQUI_END or CHASQUI_FAILED
 *
 * Threads. An engine belongs to one thread at a time: no two functions may have the same engine at once, so a program
 * with several threads puts a lock of its own around them. Different engines may be used at once. The engine computes
 * on threads of its own; a function reads JSON and prompts (milliseconds for long ones), but only chasqui_open(),
 * chasqui_close(), chasqui_next() and chasqui_run() wait. To wait for several things, poll chasqui_fd() for reading.
 * An engine does not survive fork(). No function may be called in a signal handler.
 *
 * Errors. Functions that can fail return a chasqui_status; chasqui_error() then says what was wrong, and which field.
 * Nothing is thrown across this border.
 *
 * Texts. All are UTF-8 and end with a NUL; JSON is one object. What a function returns belongs to the library.
 *
 * Versions. CHASQUI_ABI grows when a program that was compiled with an older header would misbehave; functions, events'
 * kinds and statuses may be added without that. Compare it with chasqui_abi(), which is that of the library.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHASQUI_ABI 1u

#ifdef __cplusplus
#define CHASQUI_C extern "C"
#else
#define CHASQUI_C
#endif
#ifdef __GNUC__
#define CHASQUI_API CHASQUI_C __attribute__((visibility("default")))
#else
#define CHASQUI_API CHASQUI_C
#endif

typedef struct chasqui_engine chasqui_engine;
typedef struct chasqui_event chasqui_event;

typedef enum chasqui_status {
  CHASQUI_OK = 0,
  CHASQUI_INVALID_REQUEST = 1,  /* a field, an argument or a model file is wrong */
  CHASQUI_CONTEXT_TOO_LONG = 2, /* the prompt does not fit */
  CHASQUI_NOT_FOUND = 3,        /* no such request or session */
  CHASQUI_CONFLICT = 4,         /* the session generates */
  CHASQUI_TOO_LARGE = 5,
  CHASQUI_OVERLOADED = 6,  /* too many wait, or too many sessions */
  CHASQUI_UNAVAILABLE = 7, /* the engine is being closed */
  CHASQUI_MODEL_FAILURE = 8,
  CHASQUI_NOT_SUPPORTED = 9,
  CHASQUI_STORAGE_FULL = 10,
  CHASQUI_FORBIDDEN = 11,
  CHASQUI_INTERNAL = 12 /* a fault of the library, or no memory */
} chasqui_status;

/* The version of the library, "0.1.0", and its CHASQUI_ABI. */
CHASQUI_API const char* chasqui_version(void);
CHASQUI_API uint32_t chasqui_abi(void);

/* What was wrong with the last call of this thread that failed; "" before the first. Valid until the next one fails. */
CHASQUI_API const char* chasqui_error(void);

/* Loads a model, which takes seconds, and starts an engine. `settings` may be NULL. Its members, all optional:
 *   model          path of a GGUF file; the built-in demo model without it
 *   name           what answers call it; as the file says
 *   chat_template  source of a Jinja template that replaces the model's own
 *   slots          sequences computed at once, 1 to 256: 4
 *   context        tokens of one sequence: as many as the model was trained with, at most 4096
 *   threads        compute threads; as many as there are cores
 *   workers        contexts that share the model's weights: 1
 *   gpu_layers     layers on a GPU, if there is one: all
 *   cache_mib      memory for what was computed: 1024
 *   cache_folder   a folder, of no other process, where it outlives this one
 *   sessions       sessions open at once: 1024
 *   log            lines on standard error: off, error, warning, info or debug; warning. Of the first engine, for all
 */
CHASQUI_API chasqui_status chasqui_open(const char* settings, chasqui_engine** engine);
/* Cancels what runs and frees everything, events too. NULL is allowed. */
CHASQUI_API void chasqui_close(chasqui_engine* engine);

/* Begins a request. `body` is that of POST /v1/chat/completions and of POST /v1/completions. `request`, its number in
 * this engine, may be NULL. Any number may run at once; those beyond the slots wait. */
CHASQUI_API chasqui_status chasqui_chat(chasqui_engine* engine, const char* body, uint64_t* request);
CHASQUI_API chasqui_status chasqui_complete(chasqui_engine* engine, const char* body, uint64_t* request);
/* Its end still comes, as an event; so it is no error when it has come already, or is on its way. */
CHASQUI_API chasqui_status chasqui_cancel(chasqui_engine* engine, uint64_t request);

/* Sessions: a conversation whose exact tokens the engine keeps, so that only what is new is given and computed. The
 * bodies are those of POST /v1/sessions, .../append and .../generate (docs/sessions.md); NULL stands for {}. */
#define CHASQUI_SESSION_BYTES 64
CHASQUI_API chasqui_status chasqui_session_create(chasqui_engine* engine, const char* body,
                                                  char session[CHASQUI_SESSION_BYTES]);
CHASQUI_API chasqui_status chasqui_session_append(chasqui_engine* engine, const char* session, const char* body);
CHASQUI_API chasqui_status chasqui_session_generate(chasqui_engine* engine, const char* session, const char* body,
                                                    uint64_t* request);
/* A new session with the same history. */
CHASQUI_API chasqui_status chasqui_session_fork(chasqui_engine* engine, const char* session,
                                                char fork[CHASQUI_SESSION_BYTES]);
CHASQUI_API chasqui_status chasqui_session_end(chasqui_engine* engine, const char* session);

/* Requests whose end has not been given out. */
CHASQUI_API size_t chasqui_running(const chasqui_engine* engine);
/* Readable when chasqui_next() may have something; then call it with a timeout of 0 until it returns NULL. The program
 * must not read it. -1 where the system has neither eventfd nor pipes: call chasqui_next() now and then. */
CHASQUI_API int chasqui_fd(const chasqui_engine* engine);

/* What a request says next, of whichever request; valid until the next call of a function with this engine. Waits up to
 * `timeout_ms` milliseconds, 0 for not at all, -1 for as long as it takes. NULL: nothing came, or nothing runs. */
CHASQUI_API const chasqui_event* chasqui_next(chasqui_engine* engine, int timeout_ms);
/* Gives each event to `callback` until nothing runs, or it returns something else than 0. It may begin and cancel
 * requests, but call neither chasqui_next(), chasqui_run() nor chasqui_close(). */
typedef int (*chasqui_callback)(void* user, const chasqui_event* event);
CHASQUI_API chasqui_status chasqui_run(chasqui_engine* engine, chasqui_callback callback, void* user);

typedef enum chasqui_kind {
  CHASQUI_PART = 1,  /* of a request with "stream": true: one object of its stream */
  CHASQUI_END = 2,   /* the request has ended: its last event */
  CHASQUI_FAILED = 3 /* it has failed: its last event */
} chasqui_kind;

CHASQUI_API chasqui_kind chasqui_event_kind(const chasqui_event* event);
CHASQUI_API uint64_t chasqui_event_request(const chasqui_event* event);
/* PART: a chunk as in the stream of the route. END: the whole answer; where it has streamed, an object with `reason`,
 * `usage` and `timings`. FAILED: an object with `error`. */
CHASQUI_API const char* chasqui_event_json(const chasqui_event* event);
/* The same for people: the piece of the answer's text, the whole text, nothing after a stream, or what went wrong. Of
 * several choices that of the first in the JSON. `bytes`, which may be NULL, is its length, should it contain a NUL. */
CHASQUI_API const char* chasqui_event_text(const chasqui_event* event, size_t* bytes);
/* CHASQUI_OK, or why it has failed. */
CHASQUI_API chasqui_status chasqui_event_status(const chasqui_event* event);

/* END: tokens of all choices. */
typedef enum chasqui_tokens {
  CHASQUI_TOKENS_PROMPT = 1,
  CHASQUI_TOKENS_CACHED = 2, /* of the prompt: they were computed before */
  CHASQUI_TOKENS_ANSWER = 3
} chasqui_tokens;
CHASQUI_API int64_t chasqui_event_tokens(const chasqui_event* event, chasqui_tokens which);
