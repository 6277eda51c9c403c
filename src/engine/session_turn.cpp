#include "engine/session_turn.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/session_fields.h"

namespace chasqui {
namespace {

constexpr char kTurnMagic[4] = {'T', 'u', 'r', 'n'};
constexpr std::size_t kTurnSum = 8;
constexpr std::size_t kTurnFields = 24;
// Places behind a wrong record that look like one, by their size, too, and are looked at; texts and files rarely have
// any.
constexpr int kLooksMax = 64;

enum class Tools : std::uint8_t { none, same, others };

Checksum sum_of(const Checksum& base, std::size_t at, std::span<const std::byte> size,
                std::span<const std::byte> fields) {
  std::array<std::byte, 8> place{};
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<std::byte>(std::uint64_t{at} >> 8 * i);
  Checksummer sum;
  sum.add(base);
  sum.add(place);
  sum.add(size);
  sum.add(fields);
  return sum.result();
}

bool same_call(const ToolCall& a, const ToolCall& b) {
  return a.id == b.id && a.name == b.name && a.arguments == b.arguments;
}

// So many bytes of the text are there already: an answer that goes on.
std::size_t text_kept(const ChatMessage& before, const ChatMessage& now) {
  const bool goes_on = before.role == now.role && before.reasoning == now.reasoning && before.name == now.name &&
                       before.tool_call_id == now.tool_call_id &&
                       std::ranges::equal(before.tool_calls, now.tool_calls, same_call) &&
                       now.content.starts_with(before.content);
  return goes_on ? before.content.size() : 0;
}

void put_chat(FieldWriter& fields, const ChatHistory& before, const ChatHistory& now) {
  const auto [old_end, new_end] = std::ranges::mismatch(before.messages, now.messages);
  const auto kept = static_cast<std::size_t>(new_end - now.messages.begin());
  const bool goes_on = old_end != before.messages.end() && new_end != now.messages.end();
  const std::size_t text = goes_on ? text_kept(**old_end, **new_end) : 0;
  fields.number(static_cast<std::uint64_t>(kept));
  fields.number(static_cast<std::uint64_t>(text));
  fields.count(now.messages.size() - kept, 1);
  for (std::size_t i = kept; i < now.messages.size(); ++i) {
    if (i > kept || text == 0) {
      walk_message(fields, *now.messages[i]);
    } else {
      ChatMessage rest = *now.messages[i];
      rest.content.erase(0, text);
      walk_message(fields, std::as_const(rest));
    }
  }
  const Tools tools = !now.tools ? Tools::none : now.tools == before.tools ? Tools::same : Tools::others;
  fields.number(static_cast<std::uint8_t>(tools));
  if (tools == Tools::others) {
    fields.count(now.tools->size(), 1);
    for (const Tool& tool : *now.tools) walk_tool(fields, tool);
  }
  fields.number(static_cast<std::uint8_t>(now.end));
  fields.text(now.end_text);
  fields.number(static_cast<std::uint64_t>(now.bytes));
  fields.number(static_cast<std::uint64_t>(now.decoded_bytes));
}

ChatHistoryPtr get_chat(FieldReader& fields, const ChatHistory& before) {
  ChatHistory now;
  std::uint64_t kept = 0;
  std::uint64_t text = 0;
  fields.number(kept);
  fields.number(text);
  if (kept > before.messages.size()) fields.fail();
  const std::size_t added = fields.count(0, 48);
  const ChatMessage* old = kept < before.messages.size() ? before.messages[kept].get() : nullptr;
  if (text > 0 && (added == 0 || old == nullptr || old->content.size() < text)) fields.fail();
  if (!fields.well()) return nullptr;
  now.messages.assign(before.messages.begin(), before.messages.begin() + static_cast<std::ptrdiff_t>(kept));
  for (std::size_t i = 0; i < added; ++i) {
    ChatMessage message;
    walk_message(fields, message);
    if (i == 0 && text > 0) message.content.insert(0, old->content, 0, text);
    now.messages.push_back(std::make_shared<const ChatMessage>(std::move(message)));
  }
  std::uint8_t tools = 0;
  fields.number(tools);
  if (tools > static_cast<std::uint8_t>(Tools::others)) fields.fail();
  if (tools == static_cast<std::uint8_t>(Tools::same)) now.tools = before.tools;
  if (tools == static_cast<std::uint8_t>(Tools::others)) {
    std::vector<Tool> others(fields.count(0, 24));
    for (Tool& tool : others) walk_tool(fields, tool);
    now.tools = std::make_shared<const std::vector<Tool>>(std::move(others));
  }
  std::uint8_t end = 0;
  fields.number(end);
  if (end > static_cast<std::uint8_t>(ChatHistory::End::ended_answer)) fields.fail();
  now.end = static_cast<ChatHistory::End>(end);
  fields.text(now.end_text);
  std::uint64_t bytes = 0;
  fields.number(bytes);
  now.bytes = static_cast<std::size_t>(bytes);
  now.decoded_bytes = get_decoded_bytes(fields);
  for (const auto& message : now.messages) now.count_files(*message);
  return std::make_shared<const ChatHistory>(std::move(now));
}

// How many bytes the fields have of what may be a record at this place; nothing when it is none, or does not end here.
std::optional<std::uint32_t> size_at(std::span<const std::byte> file, std::size_t at) {
  if (file.size() - at < kTurnFields || std::memcmp(file.data() + at, kTurnMagic, sizeof kTurnMagic) != 0)
    return std::nullopt;
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < sizeof size; ++i) size |= std::to_integer<std::uint32_t>(file[at + 4 + i]) << 8 * i;
  return size <= file.size() - at - kTurnFields ? std::optional(size) : std::nullopt;
}

// Of the record at this place; nothing when there is none that is good.
std::optional<std::span<const std::byte>> fields_at(std::span<const std::byte> file, std::size_t at,
                                                    const Checksum& base) {
  const auto size = size_at(file, at);
  if (!size) return std::nullopt;
  const auto fields = file.subspan(at + kTurnFields, *size);
  const Checksum sum = sum_of(base, at, file.subspan(at + 4, 4), fields);
  if (!std::ranges::equal(sum, file.subspan(at + kTurnSum, sum.size()))) return std::nullopt;
  return fields;
}

bool has_record_behind(std::span<const std::byte> file, std::size_t at, const Checksum& base) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string_view magic(kTurnMagic, sizeof kTurnMagic);
  int looks = 0;
  for (at = text.find(magic, at + 1); at != std::string_view::npos; at = text.find(magic, at + 1)) {
    if (size_at(file, at) && (++looks > kLooksMax || fields_at(file, at, base))) return true;
  }
  return false;
}

bool apply(std::span<const std::byte> record, bool has_files, SessionImage& image) {
  FieldReader fields(record, has_files);
  fields.number(image.used);
  std::uint64_t kept = 0;
  fields.number(kept);
  if (kept > image.tokens.size()) return false;
  image.tokens.resize(kept + fields.count(0, sizeof(Token)));
  for (std::size_t i = kept; i < image.tokens.size(); ++i) fields.number(image.tokens[i]);
  std::uint8_t has_chat = 0;
  fields.number(has_chat);
  image.chat = has_chat != 0 ? get_chat(fields, image.chat ? *image.chat : ChatHistory{}) : nullptr;
  return fields.good();
}

}  // namespace

void add_turn(SessionTurn& turn, SessionTurn then) {
  CHECK(then.kept <= turn.kept + turn.tokens.size(), "a turn that does not follow on the one before");
  turn.used = then.used;
  turn.tokens.resize(then.kept > turn.kept ? then.kept - turn.kept : 0);
  turn.kept = std::min(turn.kept, then.kept);
  turn.tokens.insert(turn.tokens.end(), then.tokens.begin(), then.tokens.end());
  turn.chat = std::move(then.chat);
}

void add_turn(SessionImage& image, SessionTurn then) {
  CHECK(then.kept <= image.tokens.size(), "a turn that does not follow on the one before");
  image.used = then.used;
  image.tokens.resize(then.kept);
  image.tokens.insert(image.tokens.end(), then.tokens.begin(), then.tokens.end());
  image.chat = std::move(then.chat);
}

std::vector<std::byte> write_turn(const SessionTurn& turn, const TurnPlace& place) {
  std::vector<std::byte> out(kTurnFields);
  FieldWriter fields(out);
  fields.number(turn.used);
  fields.number(static_cast<std::uint64_t>(turn.kept));
  fields.count(turn.tokens.size(), sizeof(Token));
  for (const Token token : turn.tokens) fields.number(token);
  fields.number(static_cast<std::uint8_t>(turn.chat ? 1 : 0));
  if (turn.chat) put_chat(fields, turn.before ? *turn.before : ChatHistory{}, *turn.chat);

  std::memcpy(out.data(), kTurnMagic, sizeof kTurnMagic);
  const auto size = static_cast<std::uint32_t>(out.size() - kTurnFields);
  for (std::size_t i = 0; i < sizeof size; ++i) out[4 + i] = static_cast<std::byte>(size >> 8 * i);
  const std::span<const std::byte> all(out);
  std::ranges::copy(sum_of(place.base, place.end, all.subspan(4, 4), all.subspan(kTurnFields)), out.begin() + kTurnSum);
  return out;
}

Result<std::size_t> read_turns(std::span<const std::byte> file, const TurnPlace& place, SessionImage& image) {
  std::size_t at = place.base_bytes;
  while (at < file.size()) {
    const auto fields = fields_at(file, at, place.base);
    if (!fields && has_record_behind(file, at, place.base)) {
      return Error{ErrorCode::invalid_request, "a turn of it was changed", ""};
    }
    if (!fields) return at;
    if (!apply(*fields, place.has_files, image)) {
      return Error{ErrorCode::invalid_request, "the fields of a turn are not what they should be", ""};
    }
    at += kTurnFields + fields->size();
  }
  return at;
}

}  // namespace chasqui
