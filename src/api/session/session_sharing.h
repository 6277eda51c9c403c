// Brings sessions of other nodes here when a client asks this node for one: asks whose it is before each command, takes
// it over where it is not this node's, with what was computed of it, and gives that to the next node after each answer.
// Two threads of its own, for leases and for KV; sessions themselves are read by the thread of the SessionPersister.
// Owned beside it; loop thread only. bounded: sessions that are brought at once, and answers whose KV waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/core/served_model.h"
#include "api/session/session_persister.h"
#include "base/clock.h"
#include "base/metric_set.h"
#include "engine/shared_session_store.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

struct SharingMetrics : MetricSet {
  Counter taken{*this, {"chasqui_sessions_taken_total", "Sessions that were taken over from other nodes."}};
  Counter refused{*this, {"chasqui_sessions_not_taken_total", "Sessions that could not be taken over."}};
  Counter moved{*this, {"chasqui_session_answers_moved_total", "Answers that stopped here for another node."}};
  Counter not_moved{
      *this,
      {"chasqui_session_answers_not_moved_total", "Answers that the store did not take, and that went on here."}};
  Histogram take_seconds{*this, {"chasqui_session_take_seconds", "Time to take a session over, with its KV."}};
  Counter kv_saved{*this, {"chasqui_session_kv_total", "KV of sessions, by what became of it.", "result=\"saved\""}};
  Counter kv_brought{*this, {"chasqui_session_kv_total", {}, "result=\"brought\""}};
  Counter kv_failed{*this, {"chasqui_session_kv_total", {}, "result=\"failed\""}};
  Counter swept{*this, {"chasqui_sessions_swept_total", "Sessions of lost nodes that were removed after their time."}};
};

class SessionSharing {
 public:
  // All outlive it.
  SessionSharing(std::shared_ptr<SharedSessionStore> store, SessionPersister& persister, SessionTable& sessions,
                 net::EventLoop& loop, const Clock& clock);
  SessionSharing(const SessionSharing&) = delete;
  SessionSharing& operator=(const SessionSharing&) = delete;

  // When this returns without an error, the session is in the table as it was acknowledged last, and this node's.
  // Errors are those of SharedSessionStore; conflict also while it is in use here with an older history.
  net::Awaitable<Result<void>> bring(ServedModel& served, Tenant tenant, std::string id);
  // … and, before an answer in it, what was computed of it at the node that had it.
  net::Awaitable<void> bring_computed(ServedModel& served, Tenant tenant, std::string id);
  // What the session's last answer has computed, for the next node; later, and only where it is worth it.
  void keep_kv(ServedModel& served, const Tenant& tenant, const SessionId& id);
  // Whether the store takes what pass_on() would put there, before an answer stops for that.
  net::Awaitable<Result<void>> takes_answers(SessionId id);
  // An answer goes on here that another node was to go on with.
  void note_stays(const SessionId& id, const Error& why);
  // An answer stops here: leaves what another node needs to go on with it.
  net::Awaitable<Result<void>> pass_on(ServedModel& served, RequestPtr asked, SessionId id, MovedAnswer answer);
  // The answer of this stream that another node has left in a session that is here, whose KV comes with it.
  net::Awaitable<Result<std::optional<MovedAnswer>>> moved_answer(ServedModel& served, Tenant tenant, SessionId id,
                                                                  std::string stream);
  // It has ended.
  void drop_answer(const SessionId& id);
  // The session is another node's as soon as that asks for it.
  void let_go(const SessionId& id);
  // Under which the request of an answer in this session is noted, so that its KV is found.
  static std::int32_t label_of(const Session& session);

  // After the loop: its threads end, and with them what uses engines.
  void stop();

  void add_to(MetricsPage& page) const { metrics_.add_to(page); }

 private:
  // One at a time brings a session; the others find it here.
  struct BringTurn {
    BringTurn(SessionSharing& owner, std::string session);
    ~BringTurn();
    BringTurn(const BringTurn&) = delete;
    BringTurn& operator=(const BringTurn&) = delete;

    SessionSharing& sharing;
    const std::string id;
    net::EventSignal signal;
    bool first = false;
    std::list<BringTurn*>::iterator place;
  };

  net::Awaitable<Result<void>> take_over(ServedModel& served, Tenant tenant, std::string id, SessionClaim claim);
  // `label`: as of save_kv(), so that the slots of clients keep what they have.
  net::Awaitable<void> bring_kv(ServedModel& served, Tenant tenant, std::string id, std::int32_t label,
                                std::vector<Token> history);
  net::Awaitable<void> save_kv(ServedModel& served, Tenant tenant, std::string id, std::int32_t label,
                               std::vector<Token> history);
  net::Awaitable<void> save_later(ServedModel& served, Tenant tenant, std::string id);
  net::Awaitable<void> drop_answer_of(std::string id);
  void sweep_later();
  net::Awaitable<void> sweep();

  const std::shared_ptr<SharedSessionStore> store_;
  SessionPersister& persister_;
  SessionTable& sessions_;
  net::EventLoop& loop_;
  const Clock& clock_;
  std::map<std::string, std::list<BringTurn*>> turns_;  // by session; none is empty
  std::map<std::string, TokenCount> kept_tokens_;       // of the KV that the store has of a session
  std::set<std::string> taken_over_;                    // sessions whose KV was not brought yet
  std::size_t saving_ = 0;
  std::size_t asking_ = 0;
  net::Timer next_sweep_;

  SharingMetrics metrics_;

  std::unique_ptr<net::OffloadPool> claims_;  // last: their threads end before what they use
  std::unique_ptr<net::OffloadPool> kv_;
};

}  // namespace chasqui
