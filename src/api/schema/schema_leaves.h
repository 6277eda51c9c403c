// The parts of a schema without schemas inside: values, texts, whole numbers, counts. What is not supported is refused
// by name. Pure; lives as long as one schema is being read (api/schema/schema_check).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/error.h"

namespace chasqui {

// JSON Schema has no more; a list of types names each once.
constexpr std::size_t kTypesMax = 7;

bool is_annotation(std::string_view keyword);
// `type` is one of JSON Schema's.
bool matches_type(const boost::json::value& value, std::string_view type);
// Empty where there is no string of that name.
std::string_view string_at(const boost::json::object& object, std::string_view name);

class SchemaLeaves {
 protected:
  explicit SchemaLeaves(std::string path) : path_(std::move(path)) {}

  // Notes the first mistake. `keyword` completes the path of the schema; errors name both.
  void refuse(const std::string& where, std::string_view keyword, const std::string& why);
  // Refuses what is neither in `known` nor an annotation.
  void only(const boost::json::object& schema, const std::string& where, std::initializer_list<std::string_view> known);

  boost::json::object values(const boost::json::object& schema, const std::string& where);  // const and enum
  boost::json::object string(const boost::json::object& schema, const std::string& where);
  boost::json::object integer(const boost::json::object& schema, const std::string& where);
  void check_required(const boost::json::value& required, const boost::json::object& properties,
                      const std::string& where);
  // Two counts, written to `out` unless they say nothing.
  void bounds(const boost::json::object& schema, std::string_view low, std::string_view high, const std::string& where,
              boost::json::object& out);

  std::optional<Error> error_;

 private:
  std::int64_t count(const boost::json::object& schema, std::string_view keyword, std::int64_t unsaid, bool upper,
                     const std::string& where);

  const std::string path_;
};

}  // namespace chasqui
