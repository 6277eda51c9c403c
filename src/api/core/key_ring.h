// The keys in force: from the key that a client shows to who it is. Loop thread only; the app replaces the keys when
// the key file is read again. Holds hashes, never keys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/core/gateway_headers.h"
#include "api/core/key_list.h"
#include "base/error.h"
#include "core/types.h"
#include "net/http_request.h"

namespace chasqui {

// Who a request comes from, and what that allows.
struct Caller {
  Tenant tenant;
  ServiceClass service_class = ServiceClass::standard;   // of requests that do not say
  ServiceClass most_urgent = ServiceClass::interactive;  // what a request asks for beyond this becomes this
  std::optional<std::size_t> in_flight;                  // requests of the tenant at once; none: as the server's flag
  bool admin = false;                                    // may see what others do, and change it
  bool at_admin_door = false;                            // came through the admin listener, and may do so there
  std::optional<std::int64_t> ttft_ms;                   // of this request, see RequestDraft; 0: no whole number
  bool in_session = false;                               // of the client's own, that goes on: `x-session-id`
  GatewayHeaders gateway{};                              // of this request
};

// A user of this machine, for whom the kernel vouches: a tenant without a key. Numbered from the top, while those of
// keys are numbered from the bottom; the last 2^28 user ids, which are not in use, are one tenant.
Tenant tenant_of_user(std::uint32_t uid);

class KeyRing {
 public:
  // Replaces all keys. A tenant that was ever there before keeps its id, and with it all that is kept for it.
  void replace(const std::vector<KeyLine>& lines);

  // No keys: everybody comes in, as the tenant with id 0.
  bool open() const { return keys_.empty(); }
  // Nothing when the key is not among them. Takes the same time for every key of one length.
  std::optional<Caller> find(std::string_view presented) const;
  // By `Authorization: Bearer KEY`, or `X-Api-Key: KEY`; both are sent by one SDK or the other. Reads
  // `X-TTFT-Timeout-Ms` as well.
  std::optional<Caller> find(const net::HttpRequest& request) const;

  // Who has this name that lasts, see Tenant; also a user of this machine. Nothing when there is no key for it, or
  // there are keys and it is none of them.
  std::optional<std::uint32_t> tenant_of(std::uint64_t lasting) const;

  // The same with what its first key allows, for work that goes on when its client has left.
  std::optional<Caller> caller_of(std::uint64_t lasting) const;

  // For logs: as in the key file, "uid:1000" for a user of this machine, empty for the anonymous tenant or one
  // whose key has gone.
  std::string name_of(const Tenant& tenant) const;

  // Whether the caller may change what holds for all tenants, and see paths of files: every caller where there are no
  // keys, a key with admin=yes, and any key while there is one tenant only and no such key.
  bool is_admin(const Caller& caller) const;
  bool is_admin(const net::HttpRequest& request) const;

  // Whether the sender of this may see what others do: by a key for that; where there is none, on this machine.
  bool may_watch(const net::HttpRequest& request) const;
  bool may_watch(const Caller& caller, const net::HttpRequest& request) const {
    return caller.at_admin_door || may_watch(request);
  }
  // Who may drain and look into the node through the admin listener: who is on this machine, or has an admin's key.
  bool may_operate(const net::HttpRequest& request) const;

  // Who all clients are: 0 where there are no keys; nothing where keys have several tenants.
  std::optional<Tenant> only_tenant() const {
    if (open()) return Tenant{};
    return ids_.size() == 1 ? std::optional(keys_.front().caller.tenant) : std::nullopt;
  }

  std::size_t keys() const { return keys_.size(); }
  std::size_t tenants() const { return ids_.size(); }

 private:
  struct Key {
    net::Sha256 hash;
    Caller caller;
  };

  std::vector<Key> keys_;
  std::map<std::string, std::uint32_t> ids_;              // by the tenant's name
  std::map<std::string, std::uint32_t> known_;            // … of all that ever had a key
  std::unordered_map<std::uint32_t, std::string> names_;  // … and back
  bool has_admin_ = false;
  std::uint32_t last_id_ = 0;
};

// For callers that may_watch() turns away.
Error watching_refused();

// For callers whose key is not in force. The gate of the routes looks before the body is read; the key may have been
// taken off the list while the body came.
Result<Caller> authenticate(const KeyRing& keys, const net::HttpRequest& request);

}  // namespace chasqui
