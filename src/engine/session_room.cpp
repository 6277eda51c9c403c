// What sessions may hold: how many there are, and the tokens, texts and files of each.
#include "engine/session_table.h"

namespace chasqui {
namespace {

Error too_long(std::size_t tokens, TokenCount limit) {
  return {ErrorCode::context_too_long,
          "the session would have " + std::to_string(tokens) + " tokens; at most " + std::to_string(limit) +
              " fit a slot with room for an answer",
          ""};
}

}  // namespace

Result<void> SessionTable::check_place(const SessionOwner& owner) const {
  if (owner.sessions_max > 0) {
    const auto found = of_tenant_.find(owner.tenant);
    const std::size_t open = found != of_tenant_.end() ? found->second.size() : 0;
    if (open >= owner.sessions_max) {
      return Error{ErrorCode::quota_exceeded,
                   "you have " + std::to_string(open) + " sessions, as many as you may; end one first", ""};
    }
  }
  if (sessions_.size() >= limits_.sessions) {
    return Error{
        ErrorCode::overloaded,
        "there are " + std::to_string(sessions_.size()) + " sessions here, as many as there may be; retry later", ""};
  }
  return {};
}

Result<void> SessionTable::check_room(std::uint32_t tenant, const Session* before, const SessionDelta& delta,
                                      TokenCount tokens_max) const {
  const std::size_t tokens = (before != nullptr ? before->tokens.size() : 0) + delta.tokens.size();
  if (tokens > static_cast<std::size_t>(tokens_max)) return too_long(tokens, tokens_max);
  if (!delta.chat) return {};
  if (delta.chat->messages.size() > limits_.messages) {
    return invalid_field(
        "messages", "a session may have at most " + std::to_string(limits_.messages) + " messages, answers included");
  }
  if (delta.chat->bytes > limits_.text_bytes_max()) {
    return invalid_field("messages", "the messages of the session would have " + std::to_string(delta.chat->bytes) +
                                         " bytes of text; at most " + std::to_string(limits_.text_bytes_max()) +
                                         " are kept");
  }
  return check_files(tenant, before != nullptr ? before->file_bytes() : 0, *delta.chat);
}

Result<void> SessionTable::check_files(std::uint32_t tenant, std::size_t before, const ChatHistory& after) const {
  const std::size_t bytes = after.file_bytes;
  if (bytes <= before) return {};
  if (after.files > limits_.files || bytes > limits_.file_bytes) {
    return invalid_field("messages", "a session may have at most " + std::to_string(limits_.files) +
                                         " pictures and sounds, of " + std::to_string(limits_.file_bytes) +
                                         " bytes together as files");
  }
  if (after.decoded_bytes > limits_.decoded_bytes) {
    return invalid_field("messages", "the pictures and sounds of a session may have at most " +
                                         std::to_string(limits_.decoded_bytes / 3) + " pixels together, or " +
                                         std::to_string(limits_.decoded_bytes / sizeof(float)) + " samples");
  }
  const std::size_t more = bytes - before;
  if (const auto owned = of_tenant_.find(tenant); tenant != 0 && owned != of_tenant_.end()) {
    std::size_t have = 0;
    for (const auto& [serial, session] : owned->second) have += session->file_bytes();
    if (have + more > limits_.tenant_file_bytes) {
      return Error{ErrorCode::quota_exceeded,
                   "your sessions have " + std::to_string(have) + " bytes of pictures and sounds, of at most " +
                       std::to_string(limits_.tenant_file_bytes) + "; end one first",
                   ""};
    }
  }
  if (static_cast<std::size_t>(metrics_.file_bytes.value()) + more <= limits_.all_file_bytes) return {};
  return Error{ErrorCode::overloaded, "the sessions here have as many pictures and sounds as they may; retry later",
               ""};
}

}  // namespace chasqui
