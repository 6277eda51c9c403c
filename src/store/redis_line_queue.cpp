#include "store/redis_line_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace chasqui::store {
namespace {

const std::string kLines = "{chasqui}:batch:lines";
const std::string kGroup = "nodes";
// A batch has ended by then, and its results are of no use.
const std::string kLifetime = std::to_string(std::int64_t{32} * 24 * 60 * 60);
constexpr std::size_t kResultsOfOneRead = 16;
constexpr Duration kClaimEvery = std::chrono::seconds(2);
const std::string kConsumerGone = std::to_string(std::int64_t{24} * 60 * 60 * 1000);

// KEYS: lines. ARGV: group. Making the group takes memory, which a server that has none left refuses: it could still go
// on with what it has. The acknowledgement of nothing is refused where nothing can be written, by a replica say.
const std::string kOpen = R"(
local there = false
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    there = there or group[2] == ARGV[1]
  end
end
if not there then redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM') end
redis.call('XACK', KEYS[1], ARGV[1], '0-0'))";

// KEYS: lines. ARGV: group, this node, milliseconds. Of nodes that have not been heard of for so long and have no line:
// those of a consumer that is deleted would be lost.
const std::string kForgetNodes = R"(
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local has = {}
  for i = 1, #consumer, 2 do has[consumer[i]] = consumer[i + 1] end
  if has.name ~= ARGV[2] and has.pending == 0 and has.idle >= tonumber(ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], has.name)
  end
end)";

// KEYS: lines, index. ARGV: home, lifetime, and for each line key and message.
const std::string kPublish = R"(
local out = {}
for i = 3, #ARGV, 2 do
  local id = redis.call('HGET', KEYS[2], ARGV[i])
  local there = id and (id == 'done' or #redis.call('XRANGE', KEYS[1], id, id) > 0)
  if not there then
    id = redis.call('XADD', KEYS[1], '*', 'h', ARGV[1], 'k', ARGV[i], 'm', ARGV[i + 1])
    redis.call('HSET', KEYS[2], ARGV[i], id)
  end
  out[#out + 1] = there and 1 or 0
end
redis.call('EXPIRE', KEYS[2], ARGV[2])
return out)";

// KEYS: lines, index. ARGV: group, keys.
const std::string kWithdraw = R"(
for i = 2, #ARGV do
  local id = redis.call('HGET', KEYS[2], ARGV[i])
  if id and id ~= 'done' then
    redis.call('XACK', KEYS[1], ARGV[1], id)
    redis.call('XDEL', KEYS[1], id)
  end
  redis.call('HDEL', KEYS[2], ARGV[i])
end)";

// KEYS: lines, index.
const std::string kOutstanding = R"(
local all = redis.call('HGETALL', KEYS[2])
local out = {}
for i = 1, #all, 2 do
  local id = all[i + 1]
  if id ~= 'done' and #redis.call('XRANGE', KEYS[1], id, id) > 0 then out[#out + 1] = all[i] end
end
return out)";

// KEYS: results. ARGV: where it begins, how many, of how many bytes, and of how many one may be: a larger one is no
// message.
const std::string kResults = R"(
local out = {}
local from = ARGV[1]
local room = tonumber(ARGV[3])
for _ = 1, tonumber(ARGV[2]) do
  local entry = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', 1)[1]
  if not entry then break end
  local message = ''
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'm' then message = entry[2][i + 1] end
  end
  if #message > tonumber(ARGV[4]) then message = '' end
  room = room - #message
  if room < 0 then break end
  out[#out + 1] = {entry[1], {'m', message}}
  from = '(' .. entry[1]
end
return out)";

// KEYS: results, index. ARGV: for each result its id, and the key of its line.
const std::string kAcknowledge = R"(
for i = 1, #ARGV, 2 do
  redis.call('XDEL', KEYS[1], ARGV[i])
  if redis.call('HGET', KEYS[2], ARGV[i + 1]) == 'done' then redis.call('HDEL', KEYS[2], ARGV[i + 1]) end
end)";

// KEYS: lines. ARGV: group, consumer, ids. Says which are not the consumer's.
const std::string kKeep = R"(
local lost = {}
for i = 3, #ARGV do
  local kept = {}
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) > 0 then
    kept = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  end
  if #kept == 0 then lost[#lost + 1] = ARGV[i] end
end
return lost)";

// KEYS: lines, index, results. ARGV: group, id, key, message, lifetime.
const std::string kAnswer = R"(
redis.call('XADD', KEYS[3], '*', 'm', ARGV[4])
redis.call('EXPIRE', KEYS[3], ARGV[5])
if redis.call('HGET', KEYS[2], ARGV[3]) == ARGV[2] then redis.call('HSET', KEYS[2], ARGV[3], 'done') end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2]))";

// KEYS: lines, index. ARGV: group, id, key, message, home. A line that was withdrawn does not come back.
const std::string kGiveBack = R"(
if redis.call('HGET', KEYS[2], ARGV[3]) == ARGV[2] then
  local id = redis.call('XADD', KEYS[1], '*', 'h', ARGV[5], 'k', ARGV[3], 'm', ARGV[4])
  redis.call('HSET', KEYS[2], ARGV[3], id)
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2]))";

// KEYS: lines, index. ARGV: group, id, key.
const std::string kDrop = R"(
if redis.call('HGET', KEYS[2], ARGV[3]) == ARGV[2] then redis.call('HDEL', KEYS[2], ARGV[3]) end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2]))";

std::string index_of(const std::string& home) { return "{chasqui}:batch:index:" + home; }
std::string results_of(const std::string& home) { return "{chasqui}:batch:results:" + home; }

RedisCommand script(const std::string& text, std::vector<std::string> keys) {
  RedisCommand out{"EVAL", text, std::to_string(keys.size())};
  std::ranges::move(keys, std::back_inserter(out));
  return out;
}

// [id, [field, value, …]]; null where there is no such field, or the entry was deleted.
const std::string* message_of(const RedisReply& entry) {
  if (entry.list.size() != 2) return nullptr;
  const std::vector<RedisReply>& fields = entry.list[1].list;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    if (fields[i].text == "m") return &fields[i + 1].text;
  }
  return nullptr;
}

// An entry without a message is handed on as one that cannot be read.
void add_entries(const std::vector<RedisReply>& entries, std::vector<TakenMessage>& out) {
  for (const RedisReply& entry : entries) {
    if (entry.list.empty() || entry.list[0].text.empty()) continue;
    const std::string* const message = message_of(entry);
    out.push_back({entry.list[0].text, 1, message != nullptr ? *message : std::string()});
  }
}

std::string key_or_nothing(const LinePost& line) { return line.key.batch.empty() ? std::string() : line.key.text(); }
Result<void> only_whether(const Result<RedisReply>& answer) { return answer ? Result<void>() : answer.error(); }

}  // namespace

RedisLineQueue::RedisLineQueue(RedisAddress address, Duration patience, const Clock& clock)
    : redis_(std::move(address), patience), clock_(clock) {}

void RedisLineQueue::be(std::string home) { home_ = std::move(home); }

Result<void> RedisLineQueue::open() {
  cursor_.clear();
  claim_from_ = "0-0";
  // The others may have been away as well, and first report of their lines.
  claim_at_ = clock_.now() + kClaimEvery;
  RedisCommand command = script(kOpen, {kLines});
  command.push_back(kGroup);
  const auto made = redis_.run_one(command);
  if (!made) return made.error();
  RedisCommand forget = script(kForgetNodes, {kLines});
  for (const std::string& word : {kGroup, home_, kConsumerGone}) forget.push_back(word);
  return only_whether(redis_.run_one(forget));
}

Result<std::vector<Posted>> RedisLineQueue::publish(std::span<const LinePost> lines) {
  RedisCommand command = script(kPublish, {kLines, index_of(home_)});
  command.push_back(home_);
  command.push_back(kLifetime);
  for (const LinePost& line : lines) {
    command.push_back(line.key.text());
    command.push_back(line.message);
  }
  const auto answer = redis_.run_one(command);
  if (!answer) return answer.error();
  std::vector<Posted> out;
  for (const RedisReply& there : answer->list) out.push_back(there.integer != 0 ? Posted::already : Posted::yes);
  if (out.size() == lines.size()) return out;
  return Error{ErrorCode::unavailable, "Redis at " + shown() + " answers for other lines", ""};
}

Result<void> RedisLineQueue::withdraw(std::span<const LineKey> lines) {
  RedisCommand command = script(kWithdraw, {kLines, index_of(home_)});
  command.push_back(kGroup);
  for (const LineKey& line : lines) command.push_back(line.text());
  return only_whether(redis_.run_one(command));
}

Result<std::vector<LineKey>> RedisLineQueue::outstanding() {
  const auto answer = redis_.run_one(script(kOutstanding, {kLines, index_of(home_)}));
  if (!answer) return answer.error();
  std::vector<LineKey> out;
  for (const RedisReply& each : answer->list) {
    if (auto key = read_line_key(each.text)) out.push_back(std::move(*key));
  }
  return out;
}

Result<std::vector<TakenMessage>> RedisLineQueue::results(std::size_t most, std::size_t bytes) {
  RedisCommand command = script(kResults, {results_of(home_)});
  command.push_back(cursor_.empty() ? "-" : '(' + cursor_);
  for (const std::size_t number : {std::min(most, kResultsOfOneRead), bytes, kSharedResultMost}) {
    command.push_back(std::to_string(number));
  }
  const auto answer = redis_.run_one(command);
  if (!answer) return answer.error();
  std::vector<TakenMessage> out;
  add_entries(answer->list, out);
  if (!out.empty()) cursor_ = out.back().receipt;
  return out;
}

Result<void> RedisLineQueue::acknowledge(std::span<const LinePost> results) {
  RedisCommand command = script(kAcknowledge, {results_of(home_), index_of(home_)});
  for (const LinePost& result : results) {
    command.push_back(result.receipt);
    command.push_back(key_or_nothing(result));
  }
  return only_whether(redis_.run_one(command));
}

Result<std::vector<TakenMessage>> RedisLineQueue::take(std::size_t most) {
  auto out = claim(most);
  if (!out || out->size() >= most) return out;
  const auto answer = redis_.run_one(
      {"XREADGROUP", "GROUP", kGroup, home_, "COUNT", std::to_string(most - out->size()), "STREAMS", kLines, ">"});
  if (!answer) return answer.error();
  for (const RedisReply& stream : answer->list) {
    if (stream.list.size() == 2) add_entries(stream.list[1].list, *out);
  }
  return out;
}

// Lines of nodes that were not heard of.
Result<std::vector<TakenMessage>> RedisLineQueue::claim(std::size_t most) {
  std::vector<TakenMessage> out;
  const TimePoint now = clock_.now();
  if (now < claim_at_) return out;
  claim_at_ = now + kClaimEvery;
  const std::string idle = std::to_string(kQueueIdle / std::chrono::milliseconds(1));
  const auto answer =
      redis_.run_one({"XAUTOCLAIM", kLines, kGroup, home_, idle, claim_from_, "COUNT", std::to_string(most)});
  if (!answer) return answer.error();
  if (answer->list.size() < 2) return out;
  claim_from_ = answer->list[0].text.empty() ? "0-0" : answer->list[0].text;
  add_entries(answer->list[1].list, out);
  if (auto counted = count_deliveries(out); !counted) return counted.error();
  return out;
}

Result<void> RedisLineQueue::count_deliveries(std::vector<TakenMessage>& claimed) {
  if (claimed.empty()) return {};
  std::vector<RedisCommand> commands;
  for (const TakenMessage& one : claimed) {
    commands.push_back({"XPENDING", kLines, kGroup, one.receipt, one.receipt, "1"});
  }
  const auto answers = redis_.run(commands);
  if (!answers) return answers.error();
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    const std::vector<RedisReply>& found = (*answers)[i].list;
    if (found.size() != 1 || found[0].list.size() != 4) continue;
    claimed[i].deliveries = static_cast<std::uint64_t>(std::max<std::int64_t>(1, found[0].list[3].integer));
  }
  return {};
}

Result<std::vector<std::string>> RedisLineQueue::keep(std::span<const LinePost> lines) {
  RedisCommand command = script(kKeep, {kLines});
  command.push_back(kGroup);
  command.push_back(home_);
  for (const LinePost& line : lines) command.push_back(line.receipt);
  const auto answer = redis_.run_one(command);
  if (!answer) return answer.error();
  std::vector<std::string> lost;
  for (const RedisReply& each : answer->list) lost.push_back(each.text);
  return lost;
}

Result<Posted> RedisLineQueue::answer(const LinePost& line) {
  if (line.message.size() > kSharedResultMost) return Posted::too_large;
  RedisCommand command = script(kAnswer, {kLines, index_of(line.home), results_of(line.home)});
  for (const std::string& word : {kGroup, line.receipt, key_or_nothing(line), line.message, kLifetime}) {
    command.push_back(word);
  }
  const auto answer = redis_.run_one(command);
  if (!answer) return answer.error();
  return Posted::yes;
}

Result<void> RedisLineQueue::give_back(const LinePost& line) {
  RedisCommand command = script(kGiveBack, {kLines, index_of(line.home)});
  for (const std::string& word : {kGroup, line.receipt, key_or_nothing(line), line.message, line.home}) {
    command.push_back(word);
  }
  return only_whether(redis_.run_one(command));
}

Result<void> RedisLineQueue::drop(const LinePost& line) {
  RedisCommand command = script(kDrop, {kLines, index_of(line.home)});
  for (const std::string& word : {kGroup, line.receipt, key_or_nothing(line)}) command.push_back(word);
  return only_whether(redis_.run_one(command));
}

}  // namespace chasqui::store
