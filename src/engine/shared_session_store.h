// Sessions that several nodes share: the objects that say what they are, and whose they are now. A session belongs to
// one node at a time, by a lease whose number (a fencing token) grows each time another node takes it; a node whose
// number is old can write, but what it writes is never acknowledged nor read. Owned by the SessionPersister, which
// gives each function its thread, and outlives the calls.
//
// said-is-kept: what write() has acknowledged is what the next node finds, whichever node dies how.
// one-owner: of two nodes that change a session at once, one is acknowledged, and the other one is told.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/model_identity.h"
#include "engine/moved_answer.h"
#include "engine/session_file.h"
#include "engine/session_writer.h"
#include "engine/slot_store.h"

namespace chasqui {

// Whose a session is, after a node has asked for it.
struct SessionClaim {
  enum class Kind {
    none,   // there is no such session of this tenant
    here,   // it was this node's already, by `lease`
    taken,  // it was another node's; it is this one's now, by `lease`
    lost,   // it is not known whose it is: the table of leases is new, or there never was such a session
  };
  Kind kind = Kind::none;
  std::uint64_t lease = 0;
  std::string last{};  // object of its newest change that was acknowledged; empty: none, or not known
};

// A session as another node has left it.
struct TakenSession {
  SessionImage image;
  std::uint64_t lease = 0;
};

class SharedSessionStore : public SessionWriter {
 public:
  // On a thread of its own; nothing else of this is used there. `owner`: Tenant::lasting. unavailable: no answer.
  virtual Result<SessionClaim> claim(const std::string& id, std::uint64_t owner) = 0;
  // The same thread: by whichever node.
  virtual Result<bool> has_ended(const std::string& id) = 0;

  // On the thread of write(): reads what was claimed. REQUIRES: it was not `none`
  // not_found: there is no such session of this owner; conflict: another node has taken it meanwhile, or its tokens are
  // of another vocabulary; unavailable: the store does not have, or does not give, what was acknowledged.
  virtual Result<TakenSession> take(const std::string& id, std::uint64_t owner, const SessionClaim& claim,
                                    const VocabularyId& vocabulary, const SessionFileLimits& limits,
                                    std::int64_t now) = 0;
  // The same thread: whether an answer of this session could be put there at this moment.
  virtual Result<void> check_answers(const std::string& id) = 0;
  // The same thread: an answer that another node is to go on with, in place of the one before; the newest one, or
  // nothing; and none any more.
  virtual Result<void> put_answer(const std::string& id, const MovedAnswer& answer) = 0;
  virtual Result<std::optional<MovedAnswer>> get_answer(const std::string& id) = 0;
  virtual Result<void> drop_answer(const std::string& id) = 0;

  // The same thread: removes sessions whose time is over and that no node has removed. How many. `here`: ids of those
  // that this node has; it forgets what it knew of others.
  virtual Result<std::size_t> sweep(const std::set<std::string>& here) = 0;

  // On a third thread: what was computed of a session, so that the next node need not compute it again. It is no part
  // of any promise.
  virtual Result<void> put_kv(const std::string& id, const Tenant& tenant, const ModelIdentity& model,
                              const SlotCopy& copy) = 0;
  virtual Result<void> drop_kv(const std::string& id) = 0;
  // Of a beginning of `history`. Nothing: there is none for this model.
  virtual Result<std::optional<SlotCopy>> get_kv(const std::string& id, const Tenant& tenant,
                                                 const ModelIdentity& model, std::span<const Token> history,
                                                 const SnapshotLimits& limits) = 0;
};

}  // namespace chasqui
