#include "api/core/key_ring.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace chasqui {
namespace {

// The same in every process, and never 0 or 1, which have a meaning of their own (core/types.h).
std::uint64_t lasting_name(std::string_view tenant) {
  const net::Sha256 hash = net::sha256({"chasqui tenant ", tenant});
  std::uint64_t name = 0;
  for (std::size_t i = 0; i < sizeof name; ++i) name = name << 8 | hash[i];
  return name > 1 ? name : name + 2;
}

// The upper half of the lasting names of users; the lower one is the user's id. That a key's name has it too is as
// likely as guessing 32 bits.
constexpr std::uint64_t kUsers = 0x75736572;
constexpr std::uint32_t kLastUser = 0xefffffff;

}  // namespace

Tenant tenant_of_user(std::uint32_t uid) {
  const std::uint32_t user = std::min(uid, kLastUser);
  Tenant tenant;
  tenant.id = ~user;
  tenant.lasting = kUsers << 32 | user;
  return tenant;
}

void KeyRing::replace(const std::vector<KeyLine>& lines) {
  std::map<std::string, std::uint32_t> ids;
  has_admin_ = false;
  std::vector<Key> keys;
  keys.reserve(lines.size());
  for (const KeyLine& line : lines) {
    const auto [tenant, fresh] = ids.emplace(line.tenant, 0);
    if (fresh) {
      const auto [known, unheard] = known_.emplace(line.tenant, last_id_ + 1);
      if (unheard) ++last_id_;
      tenant->second = known->second;
    }
    Key key{line.hash, {}};
    key.caller.tenant = {tenant->second, line.weight.value_or(1), lasting_name(line.tenant)};
    key.caller.in_flight = line.in_flight;
    key.caller.admin = line.admin;
    has_admin_ = has_admin_ || line.admin;
    if (line.service_class) key.caller.service_class = key.caller.most_urgent = *line.service_class;
    keys.push_back(key);
  }
  keys_ = std::move(keys);
  ids_ = std::move(ids);
  names_.clear();
  for (const auto& [name, id] : ids_) names_.emplace(id, name);
}

std::string KeyRing::name_of(const Tenant& tenant) const {
  if (tenant.lasting >> 32 == kUsers) return "uid:" + std::to_string(static_cast<std::uint32_t>(tenant.lasting));
  const auto found = names_.find(tenant.id);
  return found == names_.end() ? std::string() : found->second;
}

std::optional<Caller> KeyRing::find(std::string_view presented) const {
  if (open()) return Caller{};
  const net::Sha256 hash = net::sha256({presented});
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    if (net::equal_in_constant_time(key.hash, hash)) found = &key;
  }
  if (found == nullptr) return std::nullopt;
  return found->caller;
}

std::optional<Caller> KeyRing::find(const net::HttpRequest& request) const {
  constexpr std::string_view kBearer = "Bearer ";  // schemes have no case
  const std::string_view header = request.header("Authorization").value_or(std::string_view());
  const bool bears = equals_ignoring_case(header.substr(0, kBearer.size()), kBearer);
  std::optional<Caller> caller =
      find(bears ? header.substr(std::min(header.find_first_not_of(' ', kBearer.size()), header.size()))
                 : request.header("X-Api-Key").value_or(std::string_view()));
  if (caller) caller->in_session = !request.header("X-Session-Id").value_or(std::string_view()).empty();
  const auto limit = request.header("X-TTFT-Timeout-Ms");
  if (!caller || !limit) return caller;
  std::int64_t limit_ms = 0;
  const char* const end = limit->data() + limit->size();
  const auto [last, failed] = std::from_chars(limit->data(), end, limit_ms);
  caller->ttft_ms = failed == std::errc{} && last == end ? limit_ms : 0;
  return caller;
}

bool KeyRing::is_admin(const Caller& caller) const {
  if (open() || caller.admin) return true;
  return !has_admin_ && tenants() == 1 && caller.tenant.id == keys_.front().caller.tenant.id;
}

bool KeyRing::is_admin(const net::HttpRequest& request) const {
  const std::optional<Caller> caller = find(request);
  return caller && is_admin(*caller);
}

bool KeyRing::may_watch(const net::HttpRequest& request) const {
  const std::optional<Caller> caller = find(request);
  if (!caller) return false;
  // Behind a proxy on this machine everybody seems to be here; who has one names a key.
  return has_admin_ ? caller->admin : request.peer != nullptr && request.peer->is_loopback;
}

bool KeyRing::may_operate(const net::HttpRequest& request) const {
  if (request.peer != nullptr && request.peer->is_loopback) return true;
  const std::optional<Caller> caller = find(request);
  return caller && caller->admin;
}

std::optional<std::uint32_t> KeyRing::tenant_of(std::uint64_t lasting) const {
  if (lasting >> 32 == kUsers) return tenant_of_user(static_cast<std::uint32_t>(lasting)).id;
  if (open()) return lasting == 0 ? std::optional<std::uint32_t>(0) : std::nullopt;
  for (const Key& key : keys_) {
    if (key.caller.tenant.lasting == lasting) return key.caller.tenant.id;
  }
  return std::nullopt;
}

std::optional<Caller> KeyRing::caller_of(std::uint64_t lasting) const {
  if (open()) return lasting == 0 ? std::optional<Caller>(Caller{}) : std::nullopt;
  const auto found = std::ranges::find(keys_, lasting, [](const Key& key) { return key.caller.tenant.lasting; });
  if (found == keys_.end()) return std::nullopt;
  return found->caller;
}

Error watching_refused() {
  return {ErrorCode::forbidden, "only for clients on this machine, or with a key that has admin=yes", ""};
}

Result<Caller> authenticate(const KeyRing& keys, const net::HttpRequest& request) {
  const std::optional<Caller> caller = keys.find(request);
  if (!caller) return Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  return *caller;
}

}  // namespace chasqui
