// The last schemas and the grammars that they were written as, since clients send the same schema again and again, as
// agents do, and to write one with patterns takes milliseconds. By content alone. Each thread of the offload pool
// keeps its own; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

#include "api/schema/json_schema.h"

namespace chasqui {

class RecentSchemas {
 public:
  // Of schemas and grammars together, those that were used last.
  static constexpr std::size_t kBytesMax = 1 << 20;

  // As write_schema_grammar(). `text` is the schema as text. Errors are not kept, since they name the path.
  Result<SchemaGrammar> write(const boost::json::value& schema, const std::string& text, const std::string& path,
                              bool strict, SchemaOrder order);

  // Schemas that were there.
  std::uint64_t found() const { return found_; }

 private:
  struct Entry {
    std::string schema;
    bool strict = false;
    SchemaOrder order{};
    SchemaGrammar grammar;

    std::size_t bytes() const;
  };

  std::list<Entry> entries_;  // newest first
  std::size_t bytes_ = 0;
  std::uint64_t found_ = 0;
};

}  // namespace chasqui
