// All sessions: who has which, what may be done with them now, and when they go. Used by one thread (the loop, or that
// of a program without a server); time is an argument, tokens come in ready made (engine/session_input.h).
//
// A table outlives the model whose sessions it has where that is replaced: use_model().
//
// Errors: not_found for a session that does not exist or belongs to another tenant, without saying which; conflict
// while it is in use, or when the model that reads it now has another vocabulary; quota_exceeded and overloaded when
// there are too many; context_too_long when its tokens would not fit a slot. bounded: sessions ≤ limits.sessions; the
// tokens of each ≤ limits.tokens and one answer, its texts ≤ text_bytes_max(), its files ≤ limits.file_bytes, and those
// of all ≤ limits.all_file_bytes, where a fork's count again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/free_later.h"
#include "base/limits.h"
#include "base/metric_set.h"
#include "core/event.h"
#include "engine/session.h"
#include "engine/session_image.h"
#include "engine/session_journal.h"
#include "model/tokenizer.h"

namespace chasqui {

struct SessionLimits {
  TokenCount tokens = 0;  // of one session; a slot must have a cell left for an answer
  std::size_t sessions = kSizeLimit<"sessions">;
  Duration ttl = kTimeLimit<"session_ttl_seconds">;  // the default
  Duration ttl_max = kTimeLimit<"session_ttl_max_seconds">;
  std::size_t messages = kSizeLimit<"session_messages">;
  std::size_t files = kSizeLimit<"session_media_files">;
  std::size_t file_bytes = kSizeLimit<"session_media_bytes">;
  std::size_t all_file_bytes = kSizeLimit<"sessions_media_bytes">;
  std::size_t decoded_bytes = kSizeLimit<"decoded_media_bytes">;              // each generation decodes them
  std::size_t tenant_file_bytes = kSizeLimit<"tenant_sessions_media_bytes">;  // where there are tenants

  std::size_t text_bytes_max() const { return 64 * 1024 + 16 * static_cast<std::size_t>(tokens); }
};

// Whose sessions they are, and how many of them there may be; 0: no limit but that of all.
struct SessionOwner {
  std::uint32_t tenant = 0;
  std::size_t sessions_max = 0;
  std::uint64_t lasting = 0;  // Tenant::lasting
};

struct SessionMetrics : MetricSet {
  Gauge sessions{*this, {"chasqui_sessions", "Sessions that are open."}};
  Gauge tokens{*this, {"chasqui_session_tokens", "Tokens of their histories."}};
  Gauge file_bytes{*this, {"chasqui_session_media_bytes", "Pictures and sounds of them, as files."}};
  Counter created{*this, {"chasqui_sessions_created_total", "Sessions opened, forks included."}};
  Counter expired{*this, {"chasqui_sessions_expired_total", "Sessions that expired unused."}};
};

class SessionTable;

// The right to append to a session, or to generate in it; no other request gets it meanwhile. Spent by append() or
// begin(), given back otherwise. Must not outlive the table.
class SessionUse {
 public:
  SessionUse(SessionUse&& other) noexcept;
  SessionUse& operator=(SessionUse&&) = delete;
  ~SessionUse();

  const Session& session() const { return *session_; }
  // Whether a generation may still begin: an error when it was cancelled, or the session ended, meanwhile.
  Result<void> still_wanted() const;
  // REQUIRES: not spent
  Result<const Session*> append(SessionDelta delta, TimePoint now);
  // The request is in the engine, its prompt was the history and `before_answer`. REQUIRES: not spent, still_wanted()
  void begin(RequestId request, SessionDelta before_answer);
  // No one goes on with the answer that has stopped: what it said stays, as that of one that was cancelled.
  // REQUIRES: not spent, of take_stopped()
  void keep_answer(TimePoint now);

 private:
  friend class SessionTable;
  SessionUse(SessionTable& table, Session& session) : table_(&table), session_(&session) {}

  SessionTable* table_;  // null when spent
  Session* session_;
};

class SessionTable {
 public:
  // The tokenizer outlives the table.
  SessionTable(const SessionLimits& limits, const Tokenizer& tokenizer) : limits_(limits), tokenizer_(&tokenizer) {}
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  // From now on sessions are read by this model, which outlives the use of the table, or of the next one: theirs was
  // replaced. `vocabulary` says what tokens mean (model/vocabulary_identity). Sessions whose tokens mean something else
  // are kept as they are, and go on when a model of their vocabulary is back.
  void use_model(const SessionLimits& limits, const Tokenizer& tokenizer, const Checksum& vocabulary);
  const Checksum& vocabulary() const { return vocabulary_; }

  // The listener for every change from now on; outlives the use of the table.
  void set_journal(SessionJournal* journal) { journal_ = journal; }
  // A session of an earlier process, as it was, and so are its id and the time that it has left. Errors: overloaded
  // when there are too many, context_too_long; conflict when there is one with this id.
  Result<void> bring_back(const SessionOwner& owner, SessionImage image, TimePoint last_used);
  // Called with a pin that no session has any more; none of its requests is in the engine then. For Engine::unpin().
  void on_unpinned(std::function<void(std::uint64_t pin)> call) { unpinned_ = std::move(call); }

  // Takes the sessions that are removed: thousands may expire at once, of thousands of messages each.
  void set_free_later(FreeLater call) { free_later_ = std::move(call); }

  // Pointers to sessions are valid until the next call that may remove one: end, expire, finished, or the end of a use.

  Result<const Session*> create(const SessionOwner& owner, const SessionSettings& settings, SessionDelta begin,
                                TimePoint now);
  // Before its beginning is prepared, which takes a while: whether there is a place for one more.
  Result<void> check_place(const SessionOwner& owner) const;
  Result<const Session*> find(std::uint32_t tenant, const SessionId& id) const;
  // At most `most`, oldest first; those that were made after `after`, where one is given.
  std::vector<const Session*> list(std::uint32_t tenant, std::size_t most, const Session* after = nullptr) const;
  // Appending and generating begin here.
  Result<SessionUse> take(std::uint32_t tenant, const SessionId& id, TimePoint now);
  // A new one with the history that this one has now; while it generates, that of before. It shares the pin, since what
  // was computed of its history is in the memory of one worker.
  Result<const Session*> fork(const SessionOwner& owner, const SessionId& id, std::int64_t created, TimePoint now);
  // The request to cancel; none when it does not generate. What was generated stays.
  Result<std::optional<RequestId>> cancel(std::uint32_t tenant, const SessionId& id, TimePoint now);
  // When the answer of this request is stopped now, the session stays as it was before, and in use until
  // take_stopped() or keep_stopped(): another node is to go on with the answer. False: it has ended, or was cancelled.
  bool let_move(const SessionId& id, RequestId request);
  // Given back: another node goes on; begun: this one does. conflict: the answer has not stopped, or was cancelled.
  Result<SessionUse> take_stopped(const SessionId& id, RequestId request);
  // It is not moved any more. What it said stays, where it has stopped already.
  void keep_stopped(const SessionId& id, RequestId request, TimePoint now);
  // What all that generate have asked for.
  std::vector<std::pair<RequestId, SessionId>> generating() const;
  // The same as cancel(), and the session is hidden from now on.
  Result<std::optional<RequestId>> end(std::uint32_t tenant, const SessionId& id);
  // Each text event, as it comes: so the text of a long answer is there when it ends.
  void said(const Event& event);
  // Each finished event; those of other requests are ignored.
  void finished(const Event& event, TimePoint now);
  // The one change since then could not be kept on disk, and the client is told so: the history is again what it
  // was. Does nothing when the session is in use, or more has come on top of it: that is kept or refused together.
  void take_back(const SessionMark& before);
  // Another node has it: it goes without its end being told. False: it is in use, and stays.
  bool leave(const SessionId& id);
  bool has(const SessionId& id) const { return sessions_.contains(id.text); }
  std::set<std::string> ids() const;
  // Removes those that were unused for too long.
  void expire(TimePoint now);

  const SessionLimits& limits() const { return limits_; }
  std::size_t size() const { return sessions_.size(); }
  const SessionMetrics& metrics() const { return metrics_; }
  bool consistent() const;

 private:
  friend class SessionUse;

  Result<void> check_vocabulary(const Session& session) const;
  Result<Session*> visible(std::uint32_t tenant, const SessionId& id) const;
  // Pin 0: one of its own.
  Session& add(SessionId id, const SessionOwner& owner, const SessionSettings& settings, std::uint64_t pin,
               SessionDelta begin, TimePoint now);
  void changed(Session& session);
  void release(std::uint64_t pin);
  // What `tenant` may add to a history; `before`: null where a session begins.
  Result<void> check_room(std::uint32_t tenant, const Session* before, const SessionDelta& delta,
                          TokenCount tokens_max) const;
  Result<void> check_files(std::uint32_t tenant, std::size_t before, const ChatHistory& after) const;
  void set_chat(Session& session, ChatHistoryPtr chat);
  void extend(Session& session, SessionDelta delta);
  void take_answer(Session& session, const std::vector<Token>& generated);
  void add_answer(Session& session, const std::vector<Token>& generated);
  std::unique_ptr<AnswerText> answer_text(const Session& session) const;
  void rest(Session& session);  // its use is over
  // An idle session is in idle_; whatever changes its time takes it out first.
  void start_expiring(Session& session);
  void stop_expiring(Session& session);
  void touch(Session& session, TimePoint now);
  void remove(Session& session);  // REQUIRES: idle

  SessionLimits limits_;
  const Tokenizer* tokenizer_;
  Checksum vocabulary_{};
  SessionMetrics metrics_;
  SessionJournal* journal_ = nullptr;
  std::unordered_map<std::string, std::unique_ptr<Session>> sessions_;
  std::unordered_map<std::uint32_t, std::map<std::uint64_t, Session*>> of_tenant_;  // by serial; none is empty
  std::set<std::pair<TimePoint, Session*>> idle_;                                   // by when they expire
  std::unordered_map<RequestId, Session*> generating_;
  std::unordered_map<std::uint64_t, std::size_t> pins_;  // sessions that have it; never 0
  std::function<void(std::uint64_t)> unpinned_ = [](std::uint64_t) {};
  FreeLater free_later_ = free_now;
  std::uint64_t last_serial_ = 0;
};

}  // namespace chasqui
