#include "store/redis_leases.h"

#include <charconv>
#include <utility>

namespace chasqui::store {
namespace {

// Where the process that removes a session's objects has died, another one does it after so many seconds.
const std::string kRetryRemoval = "60";
const std::string kTombstone = "86400";  // seconds
constexpr Duration kDown = seconds(1);
constexpr Duration kLong = milliseconds(500);
// A session goes so many seconds after its time is over: an answer in it may take that long.
constexpr std::int64_t kGraceSeconds = 3600;

// KEYS: the session, the sorted set. ARGV: node, owner, id, grace. All times are by the clock of Redis, so that those
// of the nodes may differ.
const std::string kClaim = R"(
local held = redis.call('HMGET', KEYS[1], 'token', 'node', 'tenant', 'last', 'gone', 'ttl')
if held[5] then return {'none'} end
if not held[1] then return {'lost'} end
if held[3] ~= ARGV[2] then return {'none'} end
local now = tonumber(redis.call('TIME')[1])
local ends = redis.call('ZSCORE', KEYS[2], ARGV[3])
if ends and tonumber(ends) - ARGV[4] <= now then return {'none'} end
if held[6] then redis.call('ZADD', KEYS[2], now + held[6], ARGV[3]) end
if held[2] == ARGV[1] then return {'here', held[1], held[4]} end
redis.call('HSET', KEYS[1], 'node', ARGV[1])
return {'taken', tostring(redis.call('HINCRBY', KEYS[1], 'token', 1)), held[4]}
)";

// KEYS: the session, the sorted set. ARGV: node, owner, token, last, seconds until it may be removed, id, fresh.
const std::string kCommit = R"(
local held = redis.call('HMGET', KEYS[1], 'token', 'node', 'gone')
if held[3] then return 'ended' end
if not held[1] then
  if ARGV[7] ~= '1' then return 'lost' end
elseif held[1] ~= ARGV[3] or held[2] ~= ARGV[1] then return 'passed' end
redis.call('HSET', KEYS[1], 'token', ARGV[3], 'node', ARGV[1], 'tenant', ARGV[2], 'last', ARGV[4], 'ttl', ARGV[5])
redis.call('ZADD', KEYS[2], redis.call('TIME')[1] + ARGV[5], ARGV[6])
return 'held'
)";

// The same.
const std::string kEnd = R"(
local held = redis.call('HMGET', KEYS[1], 'token', 'node', 'gone')
if held[3] then return 'held' end
if not held[1] then
  if ARGV[7] ~= '1' then return 'lost' end
elseif held[1] ~= ARGV[3] or held[2] ~= ARGV[1] then return 'passed' end
redis.call('HSET', KEYS[1], 'token', ARGV[3], 'node', ARGV[1], 'tenant', ARGV[2], 'gone', '1')
redis.call('ZADD', KEYS[2], redis.call('TIME')[1] + ARGV[5], ARGV[6])
return 'held'
)";

// The same.
const std::string kRestore = R"(
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[3], 'node', ARGV[1], 'tenant', ARGV[2], 'last', ARGV[4], 'ttl', ARGV[5])
redis.call('ZADD', KEYS[2], redis.call('TIME')[1] + ARGV[5], ARGV[6])
return 1
)";

// KEYS: the session, the sorted set. ARGV: id, seconds.
const std::string kForget = R"(
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'gone', '1')
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
)";

// KEYS: the sorted set. ARGV: at most, seconds until it is tried again, what the keys of sessions begin with.
const std::string kEndOld = R"(
local now = redis.call('TIME')[1]
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(old) do
  redis.call('HSET', ARGV[3] .. id, 'gone', '1')
  redis.call('ZADD', KEYS[1], now + ARGV[2], id)
end
return old
)";

Error senseless() { return {ErrorCode::unavailable, "Redis has something else under the keys of sessions", ""}; }

Result<std::uint64_t> lease_of(const RedisReply& reply) {
  std::uint64_t out = 0;
  const char* const end = reply.text.data() + reply.text.size();
  const auto [last, failed] = std::from_chars(reply.text.data(), end, out);
  if (reply.kind != RedisReply::Kind::text || failed != std::errc{} || last != end || out == 0) return senseless();
  return out;
}

Result<SessionLeases::Outcome> outcome_of(const RedisReply& reply) {
  if (reply.kind == RedisReply::Kind::error) {
    return Error{ErrorCode::unavailable, "Redis refuses: " + reply.text, ""};
  }
  if (reply.text == "held") return SessionLeases::Outcome::held;
  if (reply.text == "passed") return SessionLeases::Outcome::passed;
  if (reply.text == "ended") return SessionLeases::Outcome::ended;
  if (reply.text == "lost") return SessionLeases::Outcome::lost;
  return senseless();
}

}  // namespace

RedisCommand RedisLeases::script_of(const std::string& script, const LeaseStep& step) const {
  return {"EVAL",
          script,
          "2",
          key_ + step.id,
          old_,
          node_,
          std::to_string(step.owner),
          std::to_string(step.lease),
          step.last,
          std::to_string(step.ttl > 0 ? step.ttl + kGraceSeconds : 0),
          step.id,
          step.fresh ? "1" : "0"};
}

Result<std::vector<RedisReply>> RedisLeases::ask(std::span<const RedisCommand> commands) {
  if (clock_.now() < down_until_) return why_down_;
  const TimePoint began = clock_.now();
  auto replies = redis_.run(commands);
  if (replies || clock_.now() - began < kLong) return replies;  // one that refuses is asked again at once
  down_until_ = clock_.now() + kDown;
  why_down_ = replies.error();
  return replies;
}

Result<RedisReply> RedisLeases::ask_one(const RedisCommand& command) {
  auto replies = ask(std::span(&command, 1));
  if (!replies) return replies.error();
  if (replies->front().kind != RedisReply::Kind::error) return std::move(replies->front());
  return Error{ErrorCode::unavailable, "Redis refuses: " + replies->front().text, ""};
}

Result<SessionClaim> RedisLeases::claim(const std::string& id, std::uint64_t owner) {
  const auto reply =
      ask_one({"EVAL", kClaim, "2", key_ + id, old_, node_, std::to_string(owner), id, std::to_string(kGraceSeconds)});
  if (!reply) return reply.error();
  if (reply->list.empty()) return senseless();
  const std::string& said = reply->list[0].text;
  if (said == "none") return SessionClaim{};
  if (said == "lost") return SessionClaim{.kind = SessionClaim::Kind::lost};
  if (reply->list.size() < 2) return senseless();
  const auto lease = lease_of(reply->list[1]);
  if (!lease) return lease.error();
  SessionClaim out{said == "here" ? SessionClaim::Kind::here : SessionClaim::Kind::taken, *lease};
  if (reply->list.size() > 2) out.last = reply->list[2].text;
  return out;
}

Result<bool> RedisLeases::has_ended(const std::string& id) {
  const auto reply = ask_one({"HEXISTS", key_ + id, "gone"});
  if (!reply) return reply.error();
  return reply->integer == 1;
}

std::vector<Result<SessionLeases::Outcome>> RedisLeases::commit(std::span<const LeaseStep> steps) {
  std::vector<RedisCommand> commands;
  for (const LeaseStep& step : steps) commands.push_back(script_of(kCommit, step));
  const auto replies = ask(commands);
  std::vector<Result<Outcome>> out;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    out.push_back(replies ? outcome_of((*replies)[i]) : Result<Outcome>(replies.error()));
  }
  return out;
}

Result<SessionLeases::Outcome> RedisLeases::end(const LeaseStep& step) {
  const auto reply = ask_one(script_of(kEnd, step));
  if (!reply) return reply.error();
  return outcome_of(*reply);
}

Result<void> RedisLeases::forget(const std::string& id) {
  const auto reply = ask_one({"EVAL", kForget, "2", key_ + id, old_, id, kTombstone});
  if (!reply) return reply.error();
  return {};
}

Result<bool> RedisLeases::restore(const LeaseStep& step) {
  const auto reply = ask_one(script_of(kRestore, step));
  if (!reply) return reply.error();
  return reply->integer == 1;
}

Result<std::vector<std::string>> RedisLeases::end_old(std::size_t most) {
  const auto reply = ask_one({"EVAL", kEndOld, "1", old_, std::to_string(most), kRetryRemoval, key_});
  if (!reply) return reply.error();
  std::vector<std::string> out;
  for (const RedisReply& id : reply->list) out.push_back(id.text);
  return out;
}

}  // namespace chasqui::store
