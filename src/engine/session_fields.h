// Fields of a session's file: numbers, texts behind their sizes, lists behind their counts. Numbers are little-endian.
// Pure values of the functions that write and read them; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/chat_template.h"

namespace chasqui {

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
  bool has_files() const { return true; }

 private:
  std::vector<std::byte>& out_;
};

// After a mistake everything that is read is 0 or empty.
class FieldReader {
 public:
  // `has_files`: messages say which pictures and sounds they have.
  FieldReader(std::span<const std::byte> in, bool has_files) : in_(in), has_files_(has_files) {}

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

  bool has_files() const { return has_files_; }

  void fail() { good_ = false; }
  // Nothing was wrong so far.
  bool well() const { return good_; }
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
  const bool has_files_;
  bool good_ = true;
};

inline void walk_file(FieldWriter& fields, const MediaFilePtr& file) {
  fields.number(static_cast<std::uint8_t>(file->kind));
  fields.text(file->bytes);
}

inline void walk_file(FieldReader& fields, MediaFilePtr& file) {
  MediaFile read;
  std::uint8_t kind = 0;
  fields.number(kind);
  if (kind > static_cast<std::uint8_t>(MediaKind::sound)) fields.fail();
  read.kind = static_cast<MediaKind>(kind);
  fields.text(read.bytes);
  file = std::make_shared<const MediaFile>(std::move(read));
}

// Of all pictures and sounds of a session.
inline std::size_t get_decoded_bytes(FieldReader& fields) {
  std::uint64_t bytes = 0;
  if (fields.has_files()) fields.number(bytes);
  return static_cast<std::size_t>(bytes);
}

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
  if (!fields.has_files()) return;
  const std::size_t files = fields.count(message.media.size(), 9);
  if constexpr (!std::is_const_v<Message>) message.media.resize(files);
  for (auto& file : message.media) walk_file(fields, file);
}

template <class Fields, class ToolType>
void walk_tool(Fields& fields, ToolType& tool) {
  fields.text(tool.name);
  fields.text(tool.description);
  fields.text(tool.parameters);
}

}  // namespace chasqui
