#include "api/schema/json_decimal.h"

#include <charconv>
#include <cmath>

namespace chasqui {

namespace json = boost::json;

std::optional<Decimal> decimal_of(const json::value& number) {
  if (number.is_int64()) return Decimal::of(std::to_string(number.get_int64()));
  if (number.is_uint64()) return Decimal::of(std::to_string(number.get_uint64()));
  if (!number.is_double() || !std::isfinite(number.get_double())) return std::nullopt;
  char digits[800];
  const auto end = std::to_chars(digits, digits + sizeof digits, number.get_double(), std::chars_format::fixed);
  return Decimal::of(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
}

}  // namespace chasqui
