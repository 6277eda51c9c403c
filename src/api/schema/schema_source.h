// The schema that a grammar is written for, as its parts find each other: where each stands, what a $ref names, and
// what was found to be wrong or cannot be kept. Lives as long as one schema is being read; one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/json.hpp>

#include "base/error.h"

namespace chasqui {

class SchemaSource {
 public:
  using Value = boost::json::value;

  // `path` is what errors call the schema.
  SchemaSource(const Value& root, std::string path) : root_(root), path_(std::move(path)) {}

  const Value& root() const { return root_; }

  // Notes where `child` stands: behind `name`, and `key` of it.
  const Value* child(const Value* parent, std::string_view name, const Value& value);
  const Value* child(const Value* parent, std::string_view name, std::string_view key, const Value& value);
  const Value* child(const Value* parent, std::string_view name, std::size_t index, const Value& value);

  // What a $ref of `schema` names; null: it was refused.
  const Value* target(const Value* schema);

  // Refuses what leads back to itself with no object or array between. Linear in all schemas together.
  void check_cycles(const Value* schema);

  // Notes the first mistake. Errors name the keyword.
  void refuse(const Value* schema, std::string_view keyword, const std::string& why);
  // Notes a keyword that an answer may not keep to, once.
  void drop(const Value* schema, std::string_view keyword, const std::string& why);

  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

  struct Dropped {
    std::string pointer;  // of the schema
    std::string keyword;
    Error error;  // what to say where nothing may be dropped
  };
  std::vector<Dropped>& dropped() { return dropped_; }

 private:
  struct Place {
    const Value* parent = nullptr;
    std::string path;
    std::string pointer;
  };

  void note(const Value* child, const Value* parent, std::string path, std::string pointer);
  Place whole_place(const Value* schema) const;
  Error error_at(const Value* schema, std::string_view keyword, const std::string& why, Place& place) const;
  std::vector<const Value*> reached_directly(const Value* schema);

  const Value& root_;
  const std::string path_;
  std::unordered_map<const Value*, Place> places_;
  std::unordered_map<const Value*, bool> acyclic_;  // false: it is being looked at
  std::set<std::pair<const Value*, std::string>> told_;
  std::vector<Dropped> dropped_;
  std::optional<Error> error_;
};

// Keywords of a schema that is an object; null where there is none of that name.
const boost::json::value* keyword_of(const boost::json::value* schema, std::string_view name);
const boost::json::object* object_keyword(const boost::json::value* schema, std::string_view name);
const boost::json::array* array_keyword(const boost::json::value* schema, std::string_view name);

}  // namespace chasqui
