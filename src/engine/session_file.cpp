#include "engine/session_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "engine/session_fields.h"
#include "engine/session_turn.h"

namespace chasqui {
namespace {

constexpr char kMagic[8] = {'C', 'h', 'a', 's', 'q', 'u', 'i', 'S'};
constexpr std::uint32_t kVersion = 3;    // 1 had no turns behind the base
constexpr std::uint32_t kTextAlone = 2;  // no pictures and sounds in its messages
constexpr std::size_t kVocabulary = 12;
constexpr std::size_t kSum = 28;
constexpr std::size_t kFields = 44;

void put_chat(FieldWriter& fields, const ChatHistory& chat) {
  fields.count(chat.messages.size(), 1);
  for (const auto& message : chat.messages) walk_message(fields, *message);
  fields.number(static_cast<std::uint8_t>(chat.tools ? 1 : 0));
  if (chat.tools) {
    fields.count(chat.tools->size(), 1);
    for (const Tool& tool : *chat.tools) walk_tool(fields, tool);
  }
  fields.number(static_cast<std::uint8_t>(chat.end));
  fields.text(chat.end_text);
  fields.number(static_cast<std::uint64_t>(chat.bytes));
  fields.number(static_cast<std::uint64_t>(chat.decoded_bytes));
}

ChatHistoryPtr get_chat(FieldReader& fields) {
  ChatHistory chat;
  const std::size_t messages = fields.count(0, 48);
  for (std::size_t i = 0; i < messages; ++i) {
    ChatMessage message;
    walk_message(fields, message);
    chat.count_files(message);
    chat.messages.push_back(std::make_shared<const ChatMessage>(std::move(message)));
  }
  std::uint8_t has_tools = 0;
  fields.number(has_tools);
  if (has_tools != 0) {
    std::vector<Tool> tools(fields.count(0, 24));
    for (Tool& tool : tools) walk_tool(fields, tool);
    chat.tools = std::make_shared<const std::vector<Tool>>(std::move(tools));
  }
  std::uint8_t end = 0;
  fields.number(end);
  if (end > static_cast<std::uint8_t>(ChatHistory::End::ended_answer)) fields.fail();
  chat.end = static_cast<ChatHistory::End>(end);
  fields.text(chat.end_text);
  std::uint64_t bytes = 0;
  fields.number(bytes);
  chat.bytes = static_cast<std::size_t>(bytes);
  chat.decoded_bytes = get_decoded_bytes(fields);
  return std::make_shared<const ChatHistory>(std::move(chat));
}

Checksum sum_of(std::span<const std::byte> base) {
  Checksummer sum;
  sum.add(base.first(kSum));
  sum.add(base.subspan(kFields));
  return sum.result();
}

// As the file says; 0 when that cannot be.
std::size_t base_size(std::span<const std::byte> file) {
  if (file.size() < kFields + 8) return 0;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 8; ++i) size |= std::to_integer<std::uint64_t>(file[kFields + i]) << 8 * i;
  return size >= kFields + 8 && size <= file.size() ? static_cast<std::size_t>(size) : 0;
}

SessionImage get_image(FieldReader& fields) {
  SessionImage image;
  std::uint64_t size = 0;
  fields.number(size);
  fields.text(image.id.text);
  fields.number(image.owner);
  fields.number(image.serial);
  fields.number(image.used);
  std::uint8_t service_class = 0;
  fields.number(service_class);
  if (service_class >= kServiceClasses) fields.fail();
  image.settings.service_class = static_cast<ServiceClass>(service_class);
  std::int64_t ttl = 0;
  fields.number(ttl);
  constexpr std::int64_t kTtlMax = 366 * 86'400;
  if (ttl < 1 || ttl > kTtlMax) fields.fail();
  image.settings.ttl = seconds(std::clamp<std::int64_t>(ttl, 1, kTtlMax));
  fields.number(image.settings.created);
  image.tokens.resize(fields.count(0, sizeof(Token)));
  for (Token& token : image.tokens) fields.number(token);
  std::uint8_t has_chat = 0;
  fields.number(has_chat);
  if (has_chat != 0) image.chat = get_chat(fields);
  return image;
}

Error damaged(const char* why) { return {ErrorCode::invalid_request, why, ""}; }

}  // namespace

std::vector<std::byte> write_session(const SessionImage& image, const VocabularyId& vocabulary) {
  std::vector<std::byte> out(kFields);
  const std::size_t chat_bytes = image.chat ? image.chat->bytes + image.chat->file_bytes : 0;
  out.reserve(kFields + 256 + 4 * image.tokens.size() + chat_bytes);
  FieldWriter fields(out);
  fields.number(std::uint64_t{0});  // the size, below
  fields.text(image.id.text);
  fields.number(image.owner);
  fields.number(image.serial);
  fields.number(image.used);
  fields.number(static_cast<std::uint8_t>(image.settings.service_class));
  fields.number(static_cast<std::int64_t>(std::chrono::duration_cast<seconds>(image.settings.ttl).count()));
  fields.number(image.settings.created);
  fields.count(image.tokens.size(), sizeof(Token));
  for (const Token token : image.tokens) fields.number(token);
  fields.number(static_cast<std::uint8_t>(image.chat ? 1 : 0));
  if (image.chat) put_chat(fields, *image.chat);

  for (std::size_t i = 0; i < 8; ++i) out[kFields + i] = static_cast<std::byte>(std::uint64_t{out.size()} >> 8 * i);
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  for (std::size_t i = 0; i < sizeof kVersion; ++i) out[8 + i] = static_cast<std::byte>(kVersion >> 8 * i);
  std::ranges::copy(vocabulary, out.begin() + kVocabulary);
  std::ranges::copy(sum_of(out), out.begin() + kSum);
  return out;
}

Checksum sum_in(std::span<const std::byte> file) {
  Checksum sum{};
  std::ranges::copy(file.subspan(kSum, sum.size()), sum.begin());
  return sum;
}

std::optional<VocabularyId> vocabulary_in(std::span<const std::byte> file) {
  VocabularyId vocabulary{};
  if (file.size() < kVocabulary + vocabulary.size()) return std::nullopt;
  std::ranges::copy(file.subspan(kVocabulary, vocabulary.size()), vocabulary.begin());
  return vocabulary;
}

Result<LoadedSession> read_session(std::span<const std::byte> bytes, const VocabularyId& vocabulary,
                                   const SessionFileLimits& limits) {
  if (bytes.size() < kFields || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return damaged("it is not a session");
  }
  std::uint32_t version = 0;
  for (std::size_t i = 0; i < sizeof version; ++i) version |= std::to_integer<std::uint32_t>(bytes[8 + i]) << 8 * i;
  if (version != kVersion && version != kTextAlone) {
    return Error{ErrorCode::conflict, "it has version " + std::to_string(version) + " of the format", ""};
  }
  LoadedSession out;
  out.place.base_bytes = base_size(bytes);
  const std::span<const std::byte> base = bytes.first(out.place.base_bytes);
  if (base.empty() || !std::ranges::equal(sum_of(base), base.subspan(kSum, 16))) {
    return damaged("it was changed or cut short");
  }
  out.place.has_files = version == kVersion;
  FieldReader fields(base.subspan(kFields), out.place.has_files);
  out.image = get_image(fields);
  if (!fields.good()) return damaged("its fields are not what they should be");
  out.place.base = sum_in(base);
  const auto end = read_turns(bytes, out.place, out.image);
  if (!end) return end.error();
  out.place.end = *end;
  // What texts take in memory; no field of the file grows by more.
  constexpr std::size_t kGrowthMax = 16;
  if (out.image.chat && out.image.chat->bytes / kGrowthMax > bytes.size())
    return damaged("its texts cannot be so long");
  out.foreign = !std::ranges::equal(bytes.subspan(kVocabulary, vocabulary.size()), vocabulary);
  const bool has_files = out.image.chat && out.image.chat->files > 0;
  const auto known = [&limits, has_files](Token token) {
    return token < limits.vocabulary && (token >= 0 || (has_files && token < kNoToken));
  };
  if (!out.foreign && !std::ranges::all_of(out.image.tokens, known)) return damaged("it has tokens that do not exist");
  return out;
}

}  // namespace chasqui
