#include "api/openai/response_store.h"

#include <utility>

#include "model/chat_history.h"

namespace chasqui {
namespace {

std::size_t bytes_of(const StoredResponse& response) {
  constexpr std::size_t kItself = 512;
  std::size_t bytes = kItself + (response.body != nullptr ? response.body->size() : 0);
  for (const std::string& id : response.output_ids) bytes += id.size();
  if (response.input != nullptr) {
    for (const std::string& item : response.input->items) bytes += item.size();
    for (const std::string& id : response.input->ids) bytes += id.size();
  }
  // What is new in the conversation of one that runs is its input, which counts; what came before has counted.
  if (response.conversation == nullptr || response.running) return bytes;
  // Messages that several share count for each of them: the one that is left may be the last.
  for (const auto& message : *response.conversation) {
    bytes += bytes_of(*message);
    for (const MediaFilePtr& file : message->media) bytes += sizeof *file + file->bytes.size();
  }
  return bytes;
}

}  // namespace

void ResponseStore::put(StoredResponse response, TimePoint now) {
  const Name name(response.tenant, response.id);
  const std::size_t bytes = bytes_of(response);
  TenantStore::put(name, std::move(response), bytes, now);
}

}  // namespace chasqui
