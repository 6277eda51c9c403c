// The responses of /v1/responses that clients may come back to: what they were, and the conversations that they ended.
// Loop thread only.
//
// bounded: entries in all, entries and bytes of each tenant's; the oldest makes room. Each is forgotten when its time
// to live is over. Nothing is seen by another tenant than its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "core/types.h"
#include "model/chat_template.h"

namespace chasqui {

struct ResponseStoreLimits {
  std::size_t responses = kSizeLimit<"responses">;
  std::size_t tenant_responses = kSizeLimit<"tenant_responses">;
  std::size_t tenant_bytes = kSizeLimit<"tenant_response_bytes">;
  Duration ttl = kTimeLimit<"response_seconds">;
};

using ConversationPtr = std::shared_ptr<const std::vector<std::shared_ptr<const ChatMessage>>>;

struct StoredResponse {
  std::string id;
  std::uint32_t tenant = 0;
  std::string body;                      // the response object
  std::vector<std::string> input_items;  // JSON objects; the first was said first
  std::vector<std::string> input_ids;
  ConversationPtr conversation;  // with the answer; null while it runs
  std::optional<RequestId> running;
};

class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreLimits limits = {}) : limits_(limits) {}

  // Replaces one with the same id, which keeps its time.
  void put(StoredResponse response, TimePoint now);
  // Null when there is none, or it is another tenant's. Valid until the next call that changes the store.
  const StoredResponse* find(std::uint32_t tenant, const std::string& id, TimePoint now);
  bool erase(std::uint32_t tenant, const std::string& id, TimePoint now);

  std::size_t size() const { return by_id_.size(); }
  std::size_t bytes(std::uint32_t tenant) const;

 private:
  struct Entry {
    StoredResponse response;
    TimePoint expires;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // the oldest first
  struct Share {
    std::size_t responses = 0;
    std::size_t bytes = 0;
  };

  void expire(TimePoint now);
  void make_room(std::uint32_t tenant);
  void forget(Entries::iterator entry);

  const ResponseStoreLimits limits_;
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_id_;
  std::map<std::uint32_t, Share> shares_;
};

}  // namespace chasqui
