#include "store/session_object.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace chasqui::store {
namespace {

constexpr char kObjectMagic[8] = {'C', 'h', 'a', 's', 'q', 'u', 'i', 'C'};
constexpr std::uint32_t kObjectVersion = 1;
constexpr std::size_t kObjectHead = 32;
constexpr std::size_t kLeaseDigits = 16;
constexpr std::size_t kNumberDigits = 8;  // and of the writer

template <class Number>
void put_number(std::vector<std::byte>& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<std::byte>(number >> 8 * i));
}

template <class Number>
Number get_number(std::span<const std::byte> from, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(std::to_integer<Number>(from[at + i]) << 8 * i);
  }
  return number;
}

template <class Number>
bool read_digits(std::string_view text, Number& out) {
  const char* const end = text.data() + text.size();
  const auto [last, failed] = std::from_chars(text.data(), end, out, 16);
  return failed == std::errc{} && last == end;
}

Error no_object(const std::string& why) { return {ErrorCode::invalid_request, why, ""}; }

std::string below(const std::string& root, const char* folder, const std::string& id) {
  return (root.empty() ? std::string() : root + '/') + folder + '/' + id;
}

}  // namespace

std::string session_folder(const std::string& root, const std::string& id) { return below(root, "sessions", id); }
std::string kv_folder(const std::string& root, const std::string& id) { return below(root, "kv", id); }
std::string answer_folder(const std::string& root, const std::string& id) { return below(root, "answers", id); }

std::string object_name(const std::string& folder, ObjectNumber number) {
  char digits[kLeaseDigits + 2 * kNumberDigits + 3];
  std::snprintf(digits, sizeof digits, "%016llx-%08x-%08x", static_cast<unsigned long long>(number.lease),
                number.number, number.writer);
  return folder + '/' + digits;
}

std::optional<ObjectNumber> number_of(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('/') + 1);
  constexpr std::size_t kSecond = kLeaseDigits + 1;
  constexpr std::size_t kThird = kSecond + kNumberDigits + 1;
  if (last.size() != kThird + kNumberDigits || last[kSecond - 1] != '-' || last[kThird - 1] != '-') return std::nullopt;
  ObjectNumber out;
  const bool read = read_digits(last.substr(0, kLeaseDigits), out.lease) &&
                    read_digits(last.substr(kSecond, kNumberDigits), out.number) &&
                    read_digits(last.substr(kThird), out.writer);
  if (!read || out.lease == 0) return std::nullopt;
  return out;
}

std::vector<std::byte> write_object(const SessionObject& object) {
  std::vector<std::byte> out;
  out.reserve(kObjectHead + object.bytes.size());
  const auto magic = std::as_bytes(std::span(kObjectMagic));
  out.insert(out.end(), magic.begin(), magic.end());
  put_number(out, kObjectVersion);
  put_number(out, std::uint32_t{object.is_whole() ? 0U : 1U});
  put_number(out, object.follows.lease);
  put_number(out, object.follows.number);
  put_number(out, object.follows.writer);
  out.insert(out.end(), object.bytes.begin(), object.bytes.end());
  return out;
}

Result<SessionObject> read_object(std::span<const std::byte> bytes) {
  if (bytes.size() < kObjectHead || std::memcmp(bytes.data(), kObjectMagic, sizeof kObjectMagic) != 0) {
    return no_object("it is no change of a session");
  }
  if (get_number<std::uint32_t>(bytes, 8) != kObjectVersion) return no_object("it has another version of the format");
  const auto kind = get_number<std::uint32_t>(bytes, 12);
  SessionObject out{{get_number<std::uint64_t>(bytes, 16), get_number<std::uint32_t>(bytes, 24),
                     get_number<std::uint32_t>(bytes, 28)},
                    bytes.subspan(kObjectHead)};
  const bool good = kind == 0 ? out.follows == ObjectNumber{} : kind == 1 && out.follows.lease != 0;
  if (!good) return no_object("what it follows makes no sense");
  return out;
}

}  // namespace chasqui::store
