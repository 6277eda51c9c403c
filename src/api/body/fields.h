// Reads a JSON object from a client field by field, and remembers the first mistake. null counts as absent, unknown
// fields are ignored (clients of every dialect send extra ones), wrong types never fall back to a default.
// Any thread; lives as long as one request is being read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/error.h"
#include "base/limits.h"

namespace chasqui {

// Limits for text that a client sent as JSON. Depth 64: more than any schema needs, less than any stack.
Result<boost::json::value> parse_json(std::string_view body);
Result<boost::json::object> parse_json_object(std::string_view body);

// Values and names of members in a JSON text, or a few more; found without building its tree, which takes up to fifty
// times the bytes of its text.
std::size_t json_nodes(std::string_view text);
// Whether it is one JSON value, of the depth that is usual for texts inside texts. Keeps nothing of it.
bool is_json(std::string_view text);

// All ids that the server gives are shorter. A longer one is looked for nowhere: it can be as long as a body, and what
// looks is the loop.
constexpr bool is_short_id(std::string_view id) { return id.size() <= kSizeLimit<"named_id_bytes">; }

class Fields {
 public:
  // `path` is put before names in messages: Fields(object, "messages[2]") complains about `messages[2].content`.
  explicit Fields(const boost::json::object& object, std::string path = {}) : object_(object), path_(std::move(path)) {}

  std::optional<bool> boolean(std::string_view name);
  // Whole numbers, also when written 3.0; refuses fractions and what does not fit.
  std::optional<std::int64_t> integer(std::string_view name);
  std::optional<double> number(std::string_view name);
  // The view lives as long as the object.
  std::optional<std::string_view> string(std::string_view name);
  const boost::json::array* array(std::string_view name);
  const boost::json::object* object(std::string_view name);
  // Null when absent.
  const boost::json::value* any(std::string_view name) const;

  // Notes a mistake in `name`, unless there was one before. `allowed` completes "NAME must be …".
  void refuse(std::string_view name, std::string_view allowed);
  // The same with a mistake that was found inside a field.
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }

  bool ok() const { return !error_; }
  // REQUIRES: !ok()
  const Error& error() const { return *error_; }
  std::string path_of(std::string_view name) const;

 private:
  const boost::json::object& object_;
  const std::string path_;
  std::optional<Error> error_;
};

}  // namespace chasqui
