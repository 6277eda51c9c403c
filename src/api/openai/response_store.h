// The responses of /v1/responses that clients may come back to: what they were, and the conversations that they ended.
// Loop thread only.
//
// bounded: entries in all, entries and bytes of each tenant's (api/core/tenant_store).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core/tenant_store.h"
#include "base/clock.h"
#include "base/limits.h"
#include "core/types.h"
#include "model/chat_template.h"

namespace chasqui {

inline constexpr TenantStoreLimits kResponseLimits{.entries = kSizeLimit<"responses">,
                                                   .tenant_entries = kSizeLimit<"tenant_responses">,
                                                   .tenant_bytes = kSizeLimit<"tenant_response_bytes">,
                                                   .ttl = kTimeLimit<"response_seconds">};

using Conversation = std::vector<std::shared_ptr<const ChatMessage>>;
using ConversationPtr = std::shared_ptr<const Conversation>;

// What a response answers, as the client wrote it. Never copied: the items of a body may be as long as the body.
struct ResponseInput {
  std::vector<std::string> items;  // JSON objects; the first was said first
  std::vector<std::string> ids;
};
using ResponseInputPtr = std::shared_ptr<const ResponseInput>;

struct StoredResponse {
  std::string id;
  std::uint32_t tenant = 0;
  std::shared_ptr<const std::string> body;  // the response object
  std::vector<std::string> output_ids;      // of its `output`
  ResponseInputPtr input;                   // null: none
  ConversationPtr conversation;             // with the answer; while it runs, what is answered
  std::optional<RequestId> running;
};

class ResponseStore : public TenantStore<StoredResponse> {
 public:
  explicit ResponseStore(const TenantStoreLimits& limits = kResponseLimits) : TenantStore(limits) {}

  // Under its tenant and id.
  void put(StoredResponse response, TimePoint now);
};

}  // namespace chasqui
