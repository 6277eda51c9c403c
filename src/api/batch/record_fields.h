// The two directions of a record that the server keeps on disk, a flat JSON object: RecordFieldsWriter writes the
// fields that a list of them names, RecordFieldsReader reads them back and refuses a record that lacks one. Both have
// the same functions, so that one list serves both. In the frame of one call; any thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/body/fields.h"
#include "base/json_writer.h"

namespace chasqui {

class RecordFieldsWriter {
 public:
  explicit RecordFieldsWriter(JsonWriter& json) : json_(json) {}

  void text(std::string_view name, const std::string& value) { json_.field(name, value); }
  void integer(std::string_view name, std::int64_t value) { json_.field(name, value); }
  void count(std::string_view name, std::uint64_t value) { json_.field(name, value); }
  void flag(std::string_view name, bool value) { json_.field(name, value); }
  // As text: JSON's numbers have 53 bits for many a reader.
  void digits(std::string_view name, std::uint64_t value) { json_.field(name, std::to_string(value)); }
  template <class Choice>
  void choice(std::string_view name, Choice value, std::span<const std::string_view> names) {
    json_.field(name, names[static_cast<std::size_t>(value)]);
  }

 private:
  JsonWriter& json_;
};

class RecordFieldsReader {
 public:
  explicit RecordFieldsReader(const boost::json::object& object) : fields_(object) {}

  void text(std::string_view name, std::string& value) {
    const auto found = fields_.string(name);
    if (!found) return refuse(name, "a string");
    value = *found;
  }
  void integer(std::string_view name, std::int64_t& value) {
    const auto found = fields_.integer(name);
    if (!found) return refuse(name, "a whole number");
    value = *found;
  }
  void count(std::string_view name, std::uint64_t& value) {
    const auto found = fields_.integer(name);
    if (!found || *found < 0) return refuse(name, "a whole number of 0 or more");
    value = static_cast<std::uint64_t>(*found);
  }
  void flag(std::string_view name, bool& value) {
    const auto found = fields_.boolean(name);
    if (!found) return refuse(name, "true or false");
    value = *found;
  }
  void digits(std::string_view name, std::uint64_t& value) {
    const std::string_view found = fields_.string(name).value_or(std::string_view());
    const char* const end = found.data() + found.size();
    const auto [last, failed] = std::from_chars(found.data(), end, value);
    if (failed != std::errc{} || last != end) refuse(name, "digits");
  }
  template <class Choice>
  void choice(std::string_view name, Choice& value, std::span<const std::string_view> names) {
    const auto found = fields_.string(name);
    for (std::size_t i = 0; found && i < names.size(); ++i) {
      if (names[i] == *found) return void(value = static_cast<Choice>(i));
    }
    refuse(name, "one of its names");
  }

  void refuse(std::string_view name, std::string_view wanted) { fields_.refuse(name, wanted); }
  bool ok() const { return fields_.ok(); }
  const Error& error() const { return fields_.error(); }

 private:
  Fields fields_;
};

}  // namespace chasqui
