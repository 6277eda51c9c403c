#include "store/redis_connection.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/time.h>

namespace chasqui::store {
namespace {

constexpr std::size_t kDepthMax = 8;  // of lists in lists

timeval timeval_of(Duration time) {
  const auto us = std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

RedisReply reply_of(const redisReply& from, std::size_t depth = 0) {
  RedisReply out;
  switch (from.type) {
    case REDIS_REPLY_INTEGER:
      out.kind = RedisReply::Kind::integer;
      out.integer = from.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      out.kind = RedisReply::Kind::text;
      out.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ERROR:
      out.kind = RedisReply::Kind::error;
      out.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ARRAY:
      out.kind = RedisReply::Kind::list;
      for (std::size_t i = 0; i < from.elements && depth < kDepthMax; ++i) {
        out.list.push_back(reply_of(*from.element[i], depth + 1));
      }
      break;
    default: break;
  }
  return out;
}

// What a URL says between its scheme and its path: percent signs stand for the bytes of a password.
Result<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    const char* const from = text.data() + i + 1;
    const char* const end = i + 2 < text.size() ? from + 2 : from;
    if (end == from || std::from_chars(from, end, value, 16).ptr != end) {
      return invalid_field("", "it has a '%' that no two hexadecimal digits follow");
    }
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

template <class Number>
bool read_number(std::string_view text, Number most, Number& out) {
  const auto [last, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc{} && last == text.data() + text.size() && out <= most;
}

Result<void> read_login(std::string_view text, RedisAddress& address) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return invalid_field("", "before the '@' stands USER:PASSWORD, or :PASSWORD");
  auto user = decoded(text.substr(0, colon));
  if (!user) return user.error();
  auto password = decoded(text.substr(colon + 1));
  if (!password) return password.error();
  address.user = std::move(*user);
  address.password = std::move(*password);
  return {};
}

Result<void> read_place(std::string_view text, RedisAddress& address) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return invalid_field("", "its address has a '[' without a ']'");
  const std::size_t colon = text.find(':', bracket);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return invalid_field("", "it names no host");
  address.host = host;
  if (colon == std::string_view::npos) return {};
  if (!read_number<std::uint16_t>(text.substr(colon + 1), 65535, address.port) || address.port == 0) {
    return invalid_field("", "its port is not a number from 1 to 65535");
  }
  return {};
}

}  // namespace

std::string RedisAddress::shown() const {
  if (host.empty()) return "unix://" + path;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return "redis://" + (is_ipv6 ? '[' + host + ']' : host) + ':' + std::to_string(port) + '/' + std::to_string(database);
}

Result<RedisAddress> read_redis_address(std::string_view url) {
  constexpr std::string_view kTcp = "redis://";
  constexpr std::string_view kUnix = "unix://";
  RedisAddress out;
  if (url.starts_with(kUnix)) {
    out.path = url.substr(kUnix.size());
    if (!out.path.starts_with('/')) return invalid_field("", "behind unix:// stands a path that begins with '/'");
    return out;
  }
  if (!url.starts_with(kTcp)) return invalid_field("", "it is neither redis://HOST[:PORT][/DATABASE] nor unix:///PATH");
  std::string_view rest = url.substr(kTcp.size());
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (auto login = read_login(rest.substr(0, at), out); !login) return login.error();
    rest = rest.substr(at + 1);
  }
  const std::size_t slash = rest.find('/');
  if (auto place = read_place(rest.substr(0, slash), out); !place) return place.error();
  const std::string_view database = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (!database.empty() && (!read_number<int>(database, 65535, out.database) || out.database < 0)) {
    return invalid_field("", "its database is not a number");
  }
  return out;
}

struct RedisConnection::RedisLink {
  redisContext* redis = nullptr;

  explicit RedisLink(redisContext* made) : redis(made) {}
  ~RedisLink() {
    if (redis != nullptr) redisFree(redis);
  }
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;
};

RedisConnection::RedisConnection(RedisAddress address, Duration patience)
    : address_(std::move(address)), patience_(patience) {}

RedisConnection::~RedisConnection() = default;

Error RedisConnection::broken(const std::string& why) {
  link_.reset();
  return Error{ErrorCode::unavailable, "Redis at " + address_.shown() + " does not answer: " + why, ""};
}

Result<void> RedisConnection::connect() {
  const timeval patience = timeval_of(patience_);
  link_ = std::make_unique<RedisLink>(address_.host.empty()
                                          ? redisConnectUnixWithTimeout(address_.path.c_str(), patience)
                                          : redisConnectWithTimeout(address_.host.c_str(), address_.port, patience));
  redisContext* const redis = link_->redis;
  if (redis == nullptr) return broken("there is no memory");
  if (redis->err != 0) return broken(std::string(redis->errstr));
  if (redisSetTimeout(redis, patience) != REDIS_OK) return broken("the system sets no deadline for it");
  std::vector<RedisCommand> first;
  if (!address_.password.empty()) {
    RedisCommand login{"AUTH"};
    if (!address_.user.empty()) login.push_back(address_.user);
    login.push_back(address_.password);
    first.push_back(std::move(login));
  }
  if (address_.database != 0) first.push_back({"SELECT", std::to_string(address_.database)});
  if (first.empty()) return {};
  const auto answers = run(first);
  if (!answers) return answers.error();
  for (const RedisReply& answer : *answers) {
    // Some say there again what they were told, and that was the password.
    if (answer.kind == RedisReply::Kind::error) return broken("it refuses the login, or the database");
  }
  return {};
}

// Between commands Redis says nothing, so what can be read then is an end: of a server that was restarted, or that
// ends what is idle.
bool RedisConnection::has_ended() const {
  pollfd waits{.fd = link_->redis->fd, .events = POLLIN, .revents = 0};
  return ::poll(&waits, 1, 0) > 0;
}

Result<std::vector<RedisReply>> RedisConnection::run(std::span<const RedisCommand> commands, Duration blocks) {
  if (link_ && has_ended()) link_.reset();
  if (!link_) {
    if (auto connected = connect(); !connected) return connected.error();
  }
  redisContext* const redis = link_->redis;
  const bool longer = blocks > Duration::zero();
  if (longer && redisSetTimeout(redis, timeval_of(patience_ + blocks)) != REDIS_OK) return broken("no deadline is set");
  for (const RedisCommand& command : commands) {
    std::vector<const char*> words;
    std::vector<std::size_t> sizes;
    for (const std::string& word : command) {
      words.push_back(word.data());
      sizes.push_back(word.size());
    }
    if (redisAppendCommandArgv(redis, static_cast<int>(words.size()), words.data(), sizes.data()) != REDIS_OK) {
      return broken("there is no memory");
    }
  }
  std::vector<RedisReply> out;
  while (out.size() < commands.size()) {
    void* got = nullptr;
    if (redisGetReply(redis, &got) != REDIS_OK || got == nullptr) return broken(std::string(redis->errstr));
    out.push_back(reply_of(*static_cast<redisReply*>(got)));
    freeReplyObject(got);
  }
  if (longer && redisSetTimeout(redis, timeval_of(patience_)) != REDIS_OK) return broken("no deadline is set");
  return out;
}

Result<RedisReply> RedisConnection::run_one(const RedisCommand& command, Duration blocks) {
  auto answers = run(std::span(&command, 1), blocks);
  if (!answers) return answers.error();
  RedisReply answer = std::move(answers->front());
  if (answer.kind != RedisReply::Kind::error) return answer;
  return Error{ErrorCode::unavailable, "Redis at " + address_.shown() + " refuses: " + answer.text, ""};
}

}  // namespace chasqui::store
