// Leases of sessions in Redis, where each step is one script. One thread at a time.
//
//   chasqui:SCOPEsession:ID   token, node, tenant, last, ttl, gone
//   chasqui:SCOPEsessions     sorted set of IDs by when they may be removed
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "store/redis_connection.h"
#include "store/session_leases.h"

namespace chasqui::store {

class RedisLeases final : public SessionLeases {
 public:
  // `node`: this process, unlike any other one. `scope`: a model of several, with a colon behind it.
  RedisLeases(const RedisAddress& address, Duration patience, std::string node, const std::string& scope)
      : redis_(address, patience),
        node_(std::move(node)),
        key_("chasqui:" + scope + "session:"),
        old_("chasqui:" + scope + "sessions") {}

  Result<SessionClaim> claim(const std::string& id, std::uint64_t owner) override;
  Result<bool> has_ended(const std::string& id) override;
  std::vector<Result<Outcome>> commit(std::span<const LeaseStep> steps) override;
  Result<Outcome> end(const LeaseStep& step) override;
  Result<void> forget(const std::string& id) override;
  Result<bool> restore(const LeaseStep& step) override;
  Result<std::vector<std::string>> end_old(std::size_t most) override;

 private:
  RedisCommand script_of(const std::string& script, const LeaseStep& step) const;
  // As RedisConnection::run(), but where one has waited in vain there is no answer for a second: those behind it in a
  // queue do not wait as long, one after the other.
  Result<std::vector<RedisReply>> ask(std::span<const RedisCommand> commands);
  Result<RedisReply> ask_one(const RedisCommand& command);

  const RealClock clock_;
  RedisConnection redis_;
  TimePoint down_until_{};
  Error why_down_{};
  const std::string node_;
  const std::string key_;  // what the keys of sessions begin with
  const std::string old_;
};

}  // namespace chasqui::store
