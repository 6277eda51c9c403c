#include "jobs/line_message.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "base/checksum.h"

namespace chasqui {
namespace {

constexpr std::uint32_t kLineMagic = 0x314C5143;    // "CQL1"
constexpr std::uint32_t kResultMagic = 0x31525143;  // "CQR1"
constexpr std::size_t kMessageHead = 20;
constexpr std::size_t kQueueNameMost = 64;

template <class Number>
void put_number(std::string& out, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

class MessageWriter {
 public:
  explicit MessageWriter(std::uint32_t magic) {
    put_number(out_, magic);
    out_.append(sizeof(Checksum), '\0');
  }

  void number(std::uint64_t value) { put_number(out_, value); }
  void text(std::string_view value) {
    put_number(out_, static_cast<std::uint32_t>(value.size()));
    out_ += value;
  }

  std::string take() {
    const std::string_view rest = std::string_view(out_).substr(kMessageHead);
    const Checksum sum = checksum(std::as_bytes(std::span(rest)));
    std::memcpy(out_.data() + sizeof(std::uint32_t), sum.data(), sum.size());
    return std::move(out_);
  }

 private:
  std::string out_;
};

class MessageReader {
 public:
  MessageReader(std::string_view message, std::uint32_t magic, std::size_t most) {
    good_ = message.size() >= kMessageHead && message.size() <= most;
    if (!good_) return;
    rest_ = message.substr(kMessageHead);
    std::uint32_t found = 0;
    std::memcpy(&found, message.data(), sizeof found);
    const Checksum sum = checksum(std::as_bytes(std::span(rest_)));
    good_ = found == magic && std::memcmp(message.data() + sizeof found, sum.data(), sum.size()) == 0;
  }

  std::uint64_t number() { return next<std::uint64_t>(); }
  template <class Number>
  Number number_of() {
    const std::uint64_t value = number();
    const auto out = static_cast<Number>(value);
    good_ = good_ && static_cast<std::uint64_t>(out) == value;
    return out;
  }
  std::string text() {
    const std::size_t size = next<std::uint32_t>();
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    std::string out(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return out;
  }
  std::string name() {
    std::string out = text();
    good_ = good_ && is_queue_name(out);
    return out;
  }
  bool whole() const { return good_ && rest_.empty(); }

 private:
  template <class Number>
  Number next() {
    good_ = good_ && rest_.size() >= sizeof(Number);
    Number out = 0;
    if (!good_) return out;
    std::memcpy(&out, rest_.data(), sizeof out);
    rest_.remove_prefix(sizeof out);
    return out;
  }

  std::string_view rest_;
  bool good_ = false;
};

}  // namespace

bool is_queue_name(std::string_view text) {
  constexpr auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kQueueNameMost && std::ranges::all_of(text, is_good);
}

std::optional<LineKey> read_line_key(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || !is_queue_name(text.substr(0, dot))) return std::nullopt;
  LineKey out{std::string(text.substr(0, dot)), 0};
  const std::string_view digits = text.substr(dot + 1);
  const auto [last, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out.line);
  if (failed != std::errc{} || last != digits.data() + digits.size() || out.text() != text) return std::nullopt;
  return out;
}

std::string write_message(const SharedLine& line) {
  MessageWriter out(kLineMagic);
  out.text(line.home);
  out.text(line.key.batch);
  out.number(line.key.line);
  out.text(line.endpoint);
  out.number(line.owner);
  out.number(static_cast<std::uint64_t>(line.expires));
  out.number(static_cast<std::uint64_t>(line.refused_since));
  out.number(line.losses);
  out.text(line.body);
  return out.take();
}

std::string write_message(const SharedResult& result) {
  MessageWriter out(kResultMagic);
  out.text(result.key.batch);
  out.number(result.key.line);
  out.number(static_cast<std::uint64_t>(result.end));
  out.number(static_cast<std::uint64_t>(result.status));
  out.text(result.request_id);
  out.text(result.body);
  return out.take();
}

std::optional<SharedLine> read_shared_line(std::string_view message) {
  MessageReader in(message, kLineMagic, kSharedLineMost);
  SharedLine out;
  out.home = in.name();
  out.key.batch = in.name();
  out.key.line = in.number_of<std::uint32_t>();
  out.endpoint = in.text();
  out.owner = in.number();
  out.expires = static_cast<std::int64_t>(in.number());
  out.refused_since = static_cast<std::int64_t>(in.number());
  out.losses = in.number_of<std::uint32_t>();
  out.body = in.text();
  if (!in.whole()) return std::nullopt;
  return out;
}

std::optional<SharedResult> read_shared_result(std::string_view message) {
  MessageReader in(message, kResultMagic, kSharedResultMost);
  SharedResult out;
  out.key.batch = in.name();
  out.key.line = in.number_of<std::uint32_t>();
  const auto end = in.number_of<std::uint32_t>();
  out.status = in.number_of<std::int32_t>();
  out.request_id = in.text();
  out.body = in.text();
  if (!out.request_id.empty() && !is_queue_name(out.request_id)) return std::nullopt;
  if (!in.whole() || end < 1 || end > static_cast<std::uint32_t>(LineEnd::lost)) return std::nullopt;
  if (out.status < 0 || out.status > 999) return std::nullopt;
  out.end = static_cast<LineEnd>(end);
  return out;
}

}  // namespace chasqui
