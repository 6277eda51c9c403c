// Reads back what the server itself has written about files and batches: every field must be there. In the frame of
// one reading; any thread.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/body/fields.h"
#include "base/json_writer.h"

namespace chasqui {

// As text: JSON's numbers have 53 bits for many a reader.
inline void write_stored_number(JsonWriter& json, std::string_view name, std::uint64_t value) {
  json.field(name, std::to_string(value));
}

class StoredFields {
 public:
  explicit StoredFields(const boost::json::object& object) : fields_(object) {}

  std::string text(std::string_view name) {
    const auto value = fields_.string(name);
    if (!value) fields_.refuse(name, "a string");
    return std::string(value.value_or(std::string_view()));
  }
  std::int64_t integer(std::string_view name) {
    const auto value = fields_.integer(name);
    if (!value) fields_.refuse(name, "a whole number");
    return value.value_or(0);
  }
  std::uint64_t count(std::string_view name) {
    const std::int64_t value = integer(name);
    if (value < 0) fields_.refuse(name, "0 or more");
    return value < 0 ? 0 : static_cast<std::uint64_t>(value);
  }
  std::uint64_t stored_number(std::string_view name) {
    const std::string digits = text(name);
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failed != std::errc{} || end != digits.data() + digits.size()) fields_.refuse(name, "digits");
    return value;
  }
  Fields& fields() { return fields_; }

  bool ok() const { return fields_.ok(); }
  const Error& error() const { return fields_.error(); }

 private:
  Fields fields_;
};

}  // namespace chasqui
