#include "engine/session_file.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/checksum.h"

namespace chasqui {
namespace {

constexpr char kMagic[8] = {'C', 'h', 'a', 's', 'q', 'u', 'i', 'S'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kWeights = 12;
constexpr std::size_t kSum = 28;
constexpr std::size_t kFields = 44;

// Both walk over the same fields in the same order, see walk() below.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::byte>& out) : out_(out) {}

  template <class Number>
  void number(const Number& value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof value; ++i) out_.push_back(static_cast<std::byte>(bits >> 8 * i));
  }
  void text(const std::string& text) {
    number(static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  // How many there are of something whose each takes at least so many bytes.
  std::size_t count(std::size_t there, std::size_t /*least*/) {
    number(static_cast<std::uint64_t>(there));
    return there;
  }

 private:
  std::vector<std::byte>& out_;
};

// After a mistake everything that is read is 0 or empty.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> in) : in_(in) {}

  template <class Number>
  void number(Number& value) {
    if (!take(sizeof value)) return;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) bits |= std::to_integer<std::uint64_t>(taken_[i]) << 8 * i;
    value = static_cast<Number>(bits);
  }
  void text(std::string& text) {
    const std::size_t size = count(0, 1);
    if (take(size)) text.assign(reinterpret_cast<const char*>(taken_.data()), size);
  }
  std::size_t count(std::size_t /*there*/, std::size_t least) {
    std::uint64_t size = 0;
    number(size);
    if (size > in_.size() / least) good_ = false;
    return good_ ? static_cast<std::size_t>(size) : 0;
  }

  void fail() { good_ = false; }
  // All of it was read, and there was neither too little nor too much.
  bool good() const { return good_ && in_.empty(); }

 private:
  bool take(std::size_t size) {
    good_ = good_ && size <= in_.size();
    if (!good_) return false;
    taken_ = in_.first(size);
    in_ = in_.subspan(size);
    return true;
  }

  std::span<const std::byte> in_;
  std::span<const std::byte> taken_;
  bool good_ = true;
};

template <class Fields, class Message>
void walk_message(Fields& fields, Message& message) {
  fields.text(message.role);
  fields.text(message.content);
  fields.text(message.reasoning);
  fields.text(message.name);
  fields.text(message.tool_call_id);
  const std::size_t calls = fields.count(message.tool_calls.size(), 24);
  if constexpr (!std::is_const_v<Message>) message.tool_calls.resize(calls);
  for (auto& call : message.tool_calls) {
    fields.text(call.id);
    fields.text(call.name);
    fields.text(call.arguments);
  }
}

template <class Fields, class ToolType>
void walk_tool(Fields& fields, ToolType& tool) {
  fields.text(tool.name);
  fields.text(tool.description);
  fields.text(tool.parameters);
}

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
}

ChatHistoryPtr get_chat(FieldReader& fields) {
  ChatHistory chat;
  const std::size_t messages = fields.count(0, 48);
  for (std::size_t i = 0; i < messages; ++i) {
    ChatMessage message;
    walk_message(fields, message);
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
  return std::make_shared<const ChatHistory>(std::move(chat));
}

Checksum sum_of(std::span<const std::byte> file) {
  Checksummer sum;
  sum.add(file.first(kSum));
  sum.add(file.subspan(kFields));
  return sum.result();
}

SessionImage get_image(FieldReader& fields) {
  SessionImage image;
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

std::vector<std::byte> write_session(const SessionImage& image, const WeightsId& weights) {
  std::vector<std::byte> out(kFields);
  out.reserve(kFields + 256 + 4 * image.tokens.size() + (image.chat ? image.chat->bytes : 0));
  FieldWriter fields(out);
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

  std::memcpy(out.data(), kMagic, sizeof kMagic);
  for (std::size_t i = 0; i < sizeof kVersion; ++i) out[8 + i] = static_cast<std::byte>(kVersion >> 8 * i);
  std::ranges::copy(weights, out.begin() + kWeights);
  std::ranges::copy(sum_of(out), out.begin() + kSum);
  return out;
}

Result<LoadedSession> read_session(std::span<const std::byte> bytes, const WeightsId& weights,
                                   const SessionFileLimits& limits) {
  if (bytes.size() < kFields || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return damaged("it is not a session");
  }
  std::uint32_t version = 0;
  for (std::size_t i = 0; i < sizeof version; ++i) version |= std::to_integer<std::uint32_t>(bytes[8 + i]) << 8 * i;
  if (!std::ranges::equal(sum_of(bytes), bytes.subspan(kSum, 16))) return damaged("it was changed or cut short");
  if (version != kVersion) {
    return Error{ErrorCode::conflict, "it has version " + std::to_string(version) + " of the format", ""};
  }
  LoadedSession out;
  FieldReader fields(bytes.subspan(kFields));
  out.image = get_image(fields);
  // What texts take in memory; no field of the file grows by more.
  constexpr std::size_t kGrowthMax = 16;
  if (out.image.chat && out.image.chat->bytes / kGrowthMax > bytes.size()) fields.fail();
  if (!fields.good()) return damaged("its fields are not what they should be");
  out.foreign = !std::ranges::equal(bytes.subspan(kWeights, weights.size()), weights);
  const auto known = [&limits](Token token) { return token >= 0 && token < limits.vocabulary; };
  if (!out.foreign && !std::ranges::all_of(out.image.tokens, known)) return damaged("it has tokens that do not exist");
  return out;
}

}  // namespace chasqui
