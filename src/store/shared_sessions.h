// SharedSessionStore over an object store and Redis. A change becomes an object under a name of its own; then Redis is
// asked whether this node still has the lease, and told the name; then the change is acknowledged. The node that takes
// the session reads from the object that Redis names back to the one in which the session is whole, so that an object
// which was never acknowledged, or comes late from a node that has lost the session, changes nothing.
//
// The names of objects that a newer one makes useless are kept until the store has removed them.
//
// Three threads, each with connections of its own: claim(); write(), take() and sweep(); put_kv() and get_kv().
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/shared_session_store.h"
#include "store/object_store.h"
#include "store/session_leases.h"
#include "store/session_object.h"

namespace chasqui::store {

struct SharedSessionsConfig {
  std::string place;          // for messages
  std::string root;           // of the objects of this model; empty: the store's own
  VocabularyId vocabulary{};  // of sessions that do not say
  std::uint32_t writer = 0;   // ObjectNumber::writer of this process
};

// What each thread has of its own.
struct SharedSessionsParts {
  std::unique_ptr<SessionLeases> claims;
  std::unique_ptr<SessionLeases> leases;
  std::unique_ptr<ObjectStore> objects;
  std::unique_ptr<ObjectStore> kv_objects;
};

class SharedSessions final : public SharedSessionStore {
 public:
  SharedSessions(SharedSessionsConfig config, SharedSessionsParts parts)
      : config_(std::move(config)), parts_(std::move(parts)) {}

  Result<SessionClaim> claim(const std::string& id, std::uint64_t owner) override;
  Result<TakenSession> take(const std::string& id, std::uint64_t owner, const SessionClaim& claim,
                            const VocabularyId& vocabulary, const SessionFileLimits& limits, std::int64_t now) override;
  Result<void> drop_kv(const std::string& id) override;
  std::vector<std::optional<Error>> write(const std::vector<SessionChange>& changes) override;
  Result<void> check_answers(const std::string& id) override;
  Result<void> put_answer(const std::string& id, const MovedAnswer& answer) override;
  Result<std::optional<MovedAnswer>> get_answer(const std::string& id) override;
  Result<void> drop_answer(const std::string& id) override;
  Result<bool> has_ended(const std::string& id) override { return parts_.claims->has_ended(id); }
  Result<std::size_t> sweep(const std::set<std::string>& here) override;
  Result<void> put_kv(const std::string& id, const Tenant& tenant, const ModelIdentity& model,
                      const SlotCopy& copy) override;
  Result<std::optional<SlotCopy>> get_kv(const std::string& id, const Tenant& tenant, const ModelIdentity& model,
                                         std::span<const Token> history, const SnapshotLimits& limits) override;

  // A session is read in as many transfers as it has turns.
  std::size_t turns_max() const override { return 32; }
  const std::string& place() const override { return config_.place; }
  const Counter& bytes_written() const override { return bytes_written_; }

 private:
  // Of one session, whose names the store is asked for.
  static constexpr std::size_t kObjectsMax = 10'000;

  // Of a session that this node has, or had.
  struct Kept {
    std::uint64_t lease = 0;
    ObjectNumber last{};  // that was acknowledged by this node; none: the session is to be written whole first
    TurnPlace place{};    // behind it
    std::set<std::string> objects{};  // that are in the store, as far as it is known
  };
  // A change on its way.
  struct Draft {
    std::size_t change = 0;  // which
    ObjectNumber number{};
    TurnPlace place{};  // behind it
    bool whole = false;
  };
  using Outcomes = std::vector<std::optional<Error>>;

  Result<StoredObject> draft_of(const SessionChange& change, Kept& kept, Draft& draft);
  void commit(const std::vector<SessionChange>& changes, const std::vector<Draft>& drafts, Outcomes& outcomes);
  std::optional<Error> settle(const SessionChange& change, const Draft& draft, SessionLeases::Outcome outcome);
  Result<SessionLeases::Outcome> find_lost(const LeaseStep& step);
  void drop_old(const std::vector<SessionChange>& changes, const std::vector<Draft>& drafts, const Outcomes& outcomes);
  std::optional<Error> end(const SessionChange& change);
  Result<void> remove_objects(const std::string& id);
  Result<void> check_late(const std::string& id, const std::string& name);
  // The answer that this node has put, if the session has ended at another one: whether it has.
  Result<bool> drop_late_answer(const std::string& id);
  // Those whose names come before that one, where one is given.
  Result<void> remove_folder(const std::string& folder, const std::string& before = "");
  void write_turns(const std::vector<SessionChange>& changes, Outcomes& outcomes);
  Kept* kept_by(const SessionChange& change);
  LeaseStep step_of(const SessionChange& change, ObjectNumber last) const;

  // What take() has read.
  using Pieces = std::map<ObjectNumber, std::vector<std::byte>>;
  Result<Pieces> read_pieces(const std::string& id, std::optional<ObjectNumber> last, std::set<std::string>& names);
  // Clients can do nothing about credentials and keys: what the store says becomes unavailable, or storage_full.
  static Error for_client(Error error);
  Result<std::vector<std::byte>> join(const std::string& id, ObjectNumber last, Pieces& pieces);

  const SharedSessionsConfig config_;
  const SharedSessionsParts parts_;
  std::unordered_map<std::string, Kept> kept_;
  // By session: an answer that is to be removed if the session has ended.
  std::map<std::string, std::string> late_;
  std::uint32_t next_ = 0;  // number of the next object, of any session: no name is written twice
  Counter bytes_written_;
};

}  // namespace chasqui::store
