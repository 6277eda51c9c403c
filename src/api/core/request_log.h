// What became of each request that asks for tokens, vectors or scores, told once, when both its handler and the engine
// are done with it: as a line in the log, short or with all fields, and to the span collector. Loop thread only; owned
// by the application, outlives the handlers.
//
// A handler holds a RequestNote from its first line to its last. Prompts and answers are never in it, unless
// `log_prompts` says so.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/core/key_ring.h"
#include "api/core/trace_parent.h"
#include "base/clock.h"
#include "base/limits.h"
#include "core/event.h"
#include "core/request.h"

namespace chasqui {

// What a request asks a model for.
enum class RequestKind { generation, embedding, ranking };
std::string_view name(RequestKind kind);

struct RequestRecord {
  std::string route;  // "/v1/chat/completions", "frame"
  RequestKind kind = RequestKind::generation;
  std::string tenant;
  std::string model;      // that it was for
  std::string client_id;  // X-Request-Id; empty where there is none
  std::string client;     // address and port, "unix", or "batch" for a line of one
  std::string prompt;     // with log_prompts: the body, cut
  TraceParent trace;      // trace is empty where spans are not collected and the caller named none
  TimePoint began{};      // the body was there
  TimePoint arrival{};    // it was read and tokenized; only when `submitted`
  TimePoint ended{};      // the answer was written
  RequestId id;
  ServiceClass service_class = ServiceClass::standard;
  bool stream = false;
  bool submitted = false;
  bool finished = false;
  bool handler_ended = false;
  int refused_with = 0;  // HTTP status of an error that came before the first token
  std::string error;     // its code
  FinishReason reason = FinishReason::stop;
  bool asked = false;
  Usage usage;
  std::vector<PrefillChunk> chunks;

  // As a client saw it, or would have: 499 when it left.
  int status() const;
  std::string_view finish() const;
};

// What a short line says of a request, but for its id:
// `200 1.2s 34→128 tok chat "model" from 127.0.0.1:53412`.
std::string short_request_line(const RequestRecord& record);

class RequestLog;

class RequestNote {
 public:
  RequestNote(RequestLog& log, std::shared_ptr<RequestRecord> record) : log_(log) {
    records_.push_back(std::move(record));
  }
  ~RequestNote();
  RequestNote(const RequestNote&) = delete;
  RequestNote& operator=(const RequestNote&) = delete;

  // As the client calls it, before it is submitted.
  void called(std::string_view id) { records_.front()->client_id = id; }
  // Who sent it, as net/socket describes a peer, before it is submitted.
  void from(std::string_view client) { records_.front()->client = client; }
  void refused(const Error& error);
  // The model that was chosen for it, before it is submitted.
  void chosen(const std::string& model) { records_.front()->model = model; }
  void is_for(RequestKind kind) { records_.front()->kind = kind; }
  // Once for each of the requests of an answer that has several; each gets a record.
  void submitted(const Request& request, bool stream);
  // In place of both, for a request that was read at `arrival` and never goes to the engine: it is over, but for its
  // answer, or its client has left.
  void computed(TimePoint arrival, const Usage& usage, bool left);

 private:
  RequestLog& log_;
  std::vector<std::shared_ptr<RequestRecord>> records_;  // one at least
};
using RequestNotePtr = std::shared_ptr<RequestNote>;

struct RequestLogConfig {
  bool lines = true;         // in the log
  bool short_lines = true;   // … which people read: those of a JSON log always have all fields
  bool log_prompts = false;  // … with prompts
  bool traces = false;       // a collector takes spans: each request gets a trace
};

class RequestLog {
 public:
  RequestLog(RequestLogConfig config, const Clock& clock, const KeyRing& keys)
      : config_(config), clock_(clock), keys_(keys) {}

  RequestNotePtr open(std::string route, const Caller& caller, std::string_view traceparent,
                      std::string_view tracestate, std::string_view body);
  // Of every request that was submitted; also those whose handler has gone.
  void finished(const Event& event);
  // The newest, at most kKept.
  std::vector<std::shared_ptr<RequestRecord>> ended_since(TimePoint begin) const;
  // Called for each request that is over.
  void on_ended(std::function<void(const std::shared_ptr<RequestRecord>&)> watcher) {
    watchers_.push_back(std::move(watcher));
  }

 private:
  friend class RequestNote;
  void ended(const std::shared_ptr<RequestRecord>& record);
  void tell(const std::shared_ptr<RequestRecord>& record);
  void write_line(const RequestRecord& record) const;

  static constexpr std::size_t kKept = kSizeLimit<"requests_remembered">;

  const RequestLogConfig config_;
  const Clock& clock_;
  const KeyRing& keys_;
  std::vector<std::function<void(const std::shared_ptr<RequestRecord>&)>> watchers_;
  std::deque<std::shared_ptr<RequestRecord>> kept_;
  std::unordered_map<RequestId, std::shared_ptr<RequestRecord>> open_;  // submitted and not finished
};

}  // namespace chasqui
