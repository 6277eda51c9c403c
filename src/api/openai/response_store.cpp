#include "api/openai/response_store.h"

#include <algorithm>

namespace chasqui {
namespace {

std::size_t bytes_of(const StoredResponse& response) {
  constexpr std::size_t kItself = 512;
  std::size_t bytes = kItself + response.body.size();
  for (const std::string& item : response.input_items) bytes += item.size();
  if (response.conversation == nullptr) return bytes;
  // Messages that several share count for each of them: the one that is left may be the last.
  for (const auto& message : *response.conversation) {
    bytes += sizeof(ChatMessage) + message->content.size() + message->reasoning.size();
    for (const ToolCall& call : message->tool_calls) bytes += sizeof call + call.arguments.size();
  }
  return bytes;
}

}  // namespace

void ResponseStore::put(StoredResponse response, TimePoint now) {
  expire(now);
  const std::size_t bytes = bytes_of(response);
  Share& share = shares_[response.tenant];
  if (const auto found = by_id_.find(response.id); found != by_id_.end()) {
    Entry& entry = *found->second;
    share.bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    entry.response = std::move(response);
    make_room(entry.response.tenant);
    return;
  }
  ++share.responses;
  share.bytes += bytes;
  const std::uint32_t tenant = response.tenant;
  entries_.push_back({std::move(response), now + limits_.ttl, bytes});
  by_id_.emplace(entries_.back().response.id, std::prev(entries_.end()));
  make_room(tenant);
}

const StoredResponse* ResponseStore::find(std::uint32_t tenant, const std::string& id, TimePoint now) {
  expire(now);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->response.tenant != tenant) return nullptr;
  return &found->second->response;
}

bool ResponseStore::erase(std::uint32_t tenant, const std::string& id, TimePoint now) {
  if (find(tenant, id, now) == nullptr) return false;
  forget(by_id_.find(id)->second);
  return true;
}

std::size_t ResponseStore::bytes(std::uint32_t tenant) const {
  const auto found = shares_.find(tenant);
  return found != shares_.end() ? found->second.bytes : 0;
}

void ResponseStore::expire(TimePoint now) {
  while (!entries_.empty() && entries_.front().expires <= now) forget(entries_.begin());
}

void ResponseStore::make_room(std::uint32_t tenant) {
  const auto of_tenant = [tenant](const Entry& entry) { return entry.response.tenant == tenant; };
  const auto too_much = [this, tenant] {
    const auto share = shares_.find(tenant);
    return share != shares_.end() &&
           (share->second.responses > limits_.tenant_responses || share->second.bytes > limits_.tenant_bytes);
  };
  while (too_much()) forget(std::find_if(entries_.begin(), entries_.end(), of_tenant));
  while (by_id_.size() > limits_.responses) forget(entries_.begin());
}

void ResponseStore::forget(Entries::iterator entry) {
  const auto share = shares_.find(entry->response.tenant);
  share->second.bytes -= entry->bytes;
  if (--share->second.responses == 0) shares_.erase(share);
  by_id_.erase(entry->response.id);
  entries_.erase(entry);
}

}  // namespace chasqui
