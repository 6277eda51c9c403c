#include "api/delivery/stream_offset.h"

#include <charconv>
#include <optional>

namespace chasqui {
namespace {

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::uint64_t> read_stream_offset(std::string_view text, const std::string& field, const StreamRing& ring) {
  const auto value = whole_number(text);
  if (!value || *value > ring.end()) {
    return invalid_field(field, field + " must be a whole number of at most " + std::to_string(ring.end()) +
                                    ", the bytes that the stream has so far");
  }
  if (*value >= ring.begin()) return *value;
  return Error{ErrorCode::conflict,
               "the stream is kept from byte " + std::to_string(ring.begin()) + " on; what was before is gone", field};
}

}  // namespace chasqui
