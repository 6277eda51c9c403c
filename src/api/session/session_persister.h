// Keeps the sessions of a table on disk (engine/session_store), or where several nodes share them
// (engine/shared_session_store): brings back those of an earlier process, and writes each change before the client that
// asked for it is told. The writing is done by a thread of its own, one batch after the other, of which each has what
// came while the last one was written; of a session only what is new since it was written. Owned by serve(); loop
// thread only. Bounded by the sessions of the table.
//
// A write that fails is tried again with the next batch; until one has succeeded, every change is answered with an
// error. Where another node has taken the session, it is not, and the session goes from the table.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/core/key_ring.h"
#include "base/clock.h"
#include "base/metric_set.h"
#include "engine/session_store.h"
#include "engine/session_table.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

class SessionPersister final : public SessionJournal {
 public:
  // `loop` and `clock` outlive it.
  SessionPersister(std::shared_ptr<SessionWriter> writer, net::EventLoop& loop, const Clock& clock);
  ~SessionPersister() override;
  SessionPersister(const SessionPersister&) = delete;
  SessionPersister& operator=(const SessionPersister&) = delete;

  // At the start: fills the table with what is on disk, and is its journal from then on. `store`: the writer.
  void bring_back(SessionStore& store, SessionTable& sessions, const KeyRing& keys, TokenCount vocabulary);
  // Where nodes share sessions: is the table's journal from then on, and takes from it what other nodes have.
  void share(SessionTable& sessions);
  // The table has a session that was another node's, by this lease; it is written whole with its first change.
  void adopt(const std::string& id, std::uint64_t lease);
  // It has left the table without an end.
  void forget(const std::string& id) { noted_.erase(id); }
  // 0: the table does not have it.
  std::uint64_t lease_of(const std::string& id) const;
  // What it has become is not written yet.
  bool is_changing(const std::string& id) const;
  // It has ended here, by this lease, which is not written yet.
  bool is_leaving(const std::string& id, std::uint64_t lease) const;
  // On the thread of the writer, after what is written now.
  template <class F>
  net::Awaitable<net::OffloadPool::ResultOf<F>> run(F function) {
    return pool_->run(std::move(function));
  }
  // After the loop has stopped: writes what is left.
  void finish();

  void changed(const Session& session) override;
  void removed(const SessionId& id) override;
  // So many changes there were.
  std::uint64_t changes() const { return changes_; }
  // Waits until all that has changed so far was written. An error when what this session has become is not on disk.
  net::Awaitable<Result<void>> kept(std::string id);
  // That is what the last failure was about.
  bool disk_full() const {
    return failure_ && (failure_->code == ErrorCode::too_large || failure_->code == ErrorCode::storage_full);
  }

  void add_to(MetricsPage& page) const;

 private:
  // A session, and the lease by which it was changed: what was done by another lease is another story.
  using Key = std::pair<std::string, std::uint64_t>;
  using Pending = std::map<Key, SessionChange>;
  // What the newest change of a session says of it, written or not.
  struct Noted {
    std::size_t tokens = 0;
    ChatHistoryPtr chat{};
    std::uint64_t lease = 0;
    std::uint64_t owner = 0;
    bool made = false;             // here, and never written
    std::size_t turns = SIZE_MAX;  // since it was written whole; SIZE_MAX: it is to be
  };
  using Batch = std::shared_ptr<const std::vector<SessionChange>>;

  // In the list as long as it lives.
  struct Waiter {
    Waiter(SessionPersister& owner, Key session, std::uint64_t change)
        : persister(owner), key(std::move(session)), until(change), signal(owner.loop_) {
      place = persister.waiters_.insert(persister.waiters_.end(), this);
    }
    ~Waiter() { persister.waiters_.erase(place); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    SessionPersister& persister;
    const Key key;
    const std::uint64_t until;
    std::optional<Error> failure;
    net::EventSignal signal;
    std::list<Waiter*>::iterator place;
  };

  void note(SessionChange change);
  void pass_on(const SessionChange& change);
  net::Awaitable<void> write_all();
  Batch take_batch();
  void take_outcome(const std::vector<SessionChange>& batch, const std::vector<std::optional<Error>>& outcome);
  void wake();
  Key newest_of(const std::string& id) const;
  std::optional<Error> failure_of(const Key& key) const;

  std::shared_ptr<SessionWriter> writer_;
  SessionTable* shared_ = nullptr;  // null: no other node has its sessions
  net::EventLoop& loop_;
  const Clock& clock_;
  std::unique_ptr<net::OffloadPool> pool_;

  std::unordered_map<std::string, Noted> noted_;  // of all sessions that are kept here
  Pending pending_;
  Pending failed_;                             // to be tried again
  std::map<Key, Error> failures_now_;          // of the last batch
  Batch writing_;                              // null: nothing is being written
  std::uint64_t changes_ = 0;
  std::uint64_t taken_ = 0;       // so many of them are in batches
  std::uint64_t done_ = 0;        // … that have been written, or could not be
  std::optional<Error> failure_;  // of the last batch
  std::list<Waiter*> waiters_;

  MetricSet metrics_;
  Counter written_{metrics_,
                   {"chasqui_session_files_written_total", "Changes of sessions that are kept, removals included."}};
  Counter failures_{metrics_, {"chasqui_session_write_failures_total", "Changes of sessions that could not be kept."}};
  Histogram write_seconds_{metrics_, {"chasqui_session_write_seconds", "Time until a batch of changes was kept."}};
  Counter brought_back_{metrics_,
                        {"chasqui_sessions_brought_back_total", "Sessions of an earlier process that go on."}};
  Counter passed_on_{metrics_, {"chasqui_sessions_passed_on_total", "Sessions that another node has taken over."}};
  Gauge damaged_{metrics_,
                 {"chasqui_session_files_unused", "Files of sessions that were not used at the start, by reason.",
                  "reason=\"damaged\""}};
  Gauge foreign_{metrics_, {"chasqui_session_files_unused", {}, "reason=\"foreign\""}};
  // Of tenants without a key, or more than the table holds.
  Gauge left_{metrics_, {"chasqui_session_files_unused", {}, "reason=\"unknown_tenant\""}};
};

}  // namespace chasqui
