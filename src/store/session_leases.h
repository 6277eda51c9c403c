// Whose each session is: for each session the number of its lease, which grows whenever another node takes the
// session, the node, the tenant and the newest object. Each step happens whole or not at all. What is forgotten is
// found again in the store, whose objects carry the numbers. One thread at a time; a process has one for each thread.
//
// Errors: unavailable, and then it is not known whether the step has happened.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/shared_session_store.h"

namespace chasqui::store {

// What is said of a session's newest object, or that it has none any more.
struct LeaseStep {
  std::string id;
  std::uint64_t owner = 0;
  std::uint64_t lease = 0;
  std::string last{};    // object
  std::int64_t ttl = 0;  // seconds that it has left, of which the leases keep the time; 0: it may be removed
  bool fresh = false;    // there may be no lease: the session has just been made, or the store was asked
};

class SessionLeases {
 public:
  enum class Outcome {
    held,    // it is done: the lease was the newest
    passed,  // another node has the session
    ended,   // it was ended
    lost,    // there is no such lease
  };

  virtual ~SessionLeases() = default;

  virtual Result<SessionClaim> claim(const std::string& id, std::uint64_t owner) = 0;
  virtual Result<bool> has_ended(const std::string& id) = 0;
  // One for each step, in their order.
  virtual std::vector<Result<Outcome>> commit(std::span<const LeaseStep> steps) = 0;
  // No node gets the session any more; its objects are to be removed, by the sweep where this node does not come to it.
  virtual Result<Outcome> end(const LeaseStep& step) = 0;
  // Its objects have gone. For a day no late write can bring it back.
  virtual Result<void> forget(const std::string& id) = 0;
  // A session whose lease was lost gets this one, where it has none. False: it has one.
  virtual Result<bool> restore(const LeaseStep& step) = 0;
  // Up to so many that may be removed now, and no node gets these any more.
  virtual Result<std::vector<std::string>> end_old(std::size_t most) = 0;
};

}  // namespace chasqui::store
