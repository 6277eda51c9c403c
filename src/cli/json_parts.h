// Members of JSON objects that a server has sent, whatever it has sent. Pure.
#pragma once

#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace chasqui::cli {

// Empty where there is none, or no string.
inline std::string text_at(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

inline double number_at(const boost::json::object& object, std::string_view key, double otherwise) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : otherwise;
}

// Null where there is none, or no object.
inline const boost::json::object* object_at(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? &value->get_object() : nullptr;
}

inline const boost::json::array* array_at(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_array() ? &value->get_array() : nullptr;
}

}  // namespace chasqui::cli
