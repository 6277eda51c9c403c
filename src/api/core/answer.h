// A valid request with what its answer is to be, the same for every protocol; what a protocol says is in its
// AnswerWriter. api/delivery/delivery delivers it: submits, streams or collects, pings while silent, and cancels the
// request when the client leaves. Made in the offload pool, where long bodies are written, too; else loop thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/core/call.h"
#include "api/core/dialect.h"
#include "api/core/generation.h"
#include "api/core/reasoning_control.h"
#include "api/core/request_log.h"
#include "core/event.h"
#include "engine/moved_answer.h"
#include "net/exchange.h"

namespace chasqui {

class ModelUse;

// All that one request said.
struct Collected {
  std::string text;
  std::vector<Token> tokens;                             // what was sampled
  std::vector<std::vector<TokenChance>> chances;         // of each of them, where the request asks for it
  std::vector<std::vector<TokenChance>> prompt_chances;  // … and of the prompt's, from the second on
  Event finished;
};

// How one protocol puts one answer into words. Made for each request; `out` is appended to.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Server-sent events: progress() for each progress event, text() for each text event, then end() once, or fail().
  virtual void text(const Event& event, std::string& out) = 0;
  virtual void end(const Event& event, std::string& out) = 0;
  virtual void fail(const Error& error, std::string& out);  // OpenAI's shape, unless the protocol has its own
  // How far the prompt has been read; protocols without a word for it say nothing.
  virtual void progress(const Event&, std::string& /*out*/) {}
  // How likely the next tokens of the prompt were, for protocols that ask for it.
  virtual void prompt(const Event&, std::string& /*out*/) {}
  // Something that keeps a silent stream open: a comment, unless clients of the protocol wait for events only.
  virtual void ping(std::string& out);
  // Of a stream. Some protocols have streams of their own, in which nothing can be said that clients ignore.
  virtual net::HttpHeaders headers() const;
  virtual bool has_comments() const { return true; }
  // The same for a request that does not stream, for writers that read along: the finished event comes last.
  virtual void hear(const Event&) {}
  // The answers as one JSON body, for a request that does not stream: one, unless the protocol has several in one. In a
  // stream, end() then comes once for each of them, and the last ends the stream.
  virtual std::string whole(const std::vector<Collected>& answers) = 0;
  virtual std::string_view content_type() const { return "application/json"; }  // of whole()
  // About how many bytes of whole() come from the request and not from the answers. Long bodies are written in the
  // offload pool, unless whole() uses what only the loop may.
  virtual std::size_t repeated_bytes() const { return 0; }
  virtual bool stays_on_loop() const { return false; }
};

// A stream that is kept, at the end of its part here.
struct MovedStream {
  std::string name;
  StreamEnd told{};
  std::vector<Token> tokens{};  // of the answer
};

struct Resumed;

struct Answer {
  RequestPtr request;
  bool stream = false;
  std::unique_ptr<AnswerWriter> writer;
  std::vector<RequestPtr> others = {};      // further requests of one client, whose answers are delivered together
  std::function<void()> on_submitted = {};  // runs when the engine has the request, before any event of it
  // Is awaited before the end of the answer is told; its error takes the end's place.
  std::function<net::Awaitable<Result<void>>()> before_end = {};
  // Takes what it has said when another node is to go on with it; null: none can. Where no node can take it, this is
  // what goes on here, by the same permit; an error is its end.
  std::function<net::Awaitable<Result<std::unique_ptr<Resumed>>>(MovedStream, Permit)> on_moved = {};
  std::shared_ptr<const StreamEnd> told = {};   // by the node that has begun it; null: it begins here
  ReasoningSwitchPtr reasoning_switch = {};     // where a client may end the reasoning
  RequestNotePtr note = {};                     // none where no log is kept
  std::vector<std::string> skipped_tools = {};  // their types: the client is told
  // For how long the model stays loaded after this, for who may say so; zero: no longer, negative: without end.
  std::optional<Duration> keep_alive = {};
  std::shared_ptr<const ModelUse> use = {};  // of an answer that outlives its handler: its model
  std::string ready = {};  // the whole body, where there is nothing to generate; then there is no request, nor a writer
};

// What goes on in place of an answer that has stopped: it begins with what that has said.
struct Resumed {
  Answer answer;
  std::unique_ptr<Generation> generation;
  Error why;  // the other one was not moved
};

// What a route that generates does with a body, in the offload pool.
using PrepareAnswer = Result<Answer> (*)(const ServedModel&, const Caller&, const std::string&);

// At least one request.
Answer answer_of(std::vector<RequestPtr> requests, bool stream, std::unique_ptr<AnswerWriter> writer);

// For the handler of a request that has not come to the engine yet. Null where no log is kept.
RequestNotePtr open_note(const Call& call);
// … and for one that did not get through.
void note_refused(const RequestNotePtr& note, const Error& error);

// Weighs the request for admission and submits it. Errors are admission's and the engine's.
Result<std::unique_ptr<Generation>> submit(ServedModel& served, const Answer& answer, Permit permit);

// Waits for Answer::before_end when the finished event is among `events`; what went wrong then becomes its error.
net::Awaitable<void> settle_end(const Answer& answer, std::vector<Event>& events);

// The frames of `events`; true when the last one of the answer was among them. Where a request stands while it waits
// is a comment, `: queued position=3 wait=1.2s`, in every protocol that has comments.
// With several answers `running` says how many have not ended yet.
bool write_events(AnswerWriter& writer, std::span<const Event> events, std::string& out,
                  std::size_t* running = nullptr);

// Responds with the error's status and body, and where trying again makes sense with `Retry-After`, in whole seconds,
// and `retry-after-ms`, which OpenAI's clients prefer.
net::Awaitable<void> respond_error(const Dialect& dialect, net::HttpExchange& exchange, Error error);
net::Awaitable<void> respond_json(net::HttpExchange& exchange, std::string body);

// What became of an event that ends a request without an answer: errors, and cancels that the client did not ask for.
// Nothing when the event is an ordinary end.
std::optional<Error> failure_of(const Event& finished);

}  // namespace chasqui
