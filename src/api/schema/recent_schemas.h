// The last schemas and the grammars that they were written as, since clients send the same schema again and again, as
// agents do, and to write one with patterns takes milliseconds. By content alone. Each thread of the offload pool
// keeps its own; one thread.
#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "api/schema/json_schema.h"
#include "base/limits.h"
#include "base/metric_set.h"

namespace chasqui {

struct SchemaMetrics : MetricSet {
  Counter kept{*this,
               {"chasqui_schema_grammars_total",
                "JSON Schemas of requests, whose grammars were kept from before or written.", "from=\"kept\""}};
  Counter written{*this, {"chasqui_schema_grammars_total", {}, "from=\"written\""}};
};

// Of all threads of the process.
SchemaMetrics& schema_metrics();

class RecentSchemas {
 public:
  // Of schemas and grammars together, those that were used last.
  static constexpr std::size_t kBytesMax = kSizeLimit<"schema_grammars_bytes">;

  explicit RecentSchemas(SchemaMetrics& metrics) : metrics_(metrics) {}

  // As write_schema_grammar(). `text` is the schema as text. Errors are not kept, since they name the path.
  Result<SchemaGrammar> write(const boost::json::value& schema, const std::string& text, const std::string& path,
                              bool strict, SchemaOrder order);

 private:
  struct Entry {
    std::string schema;
    bool strict = false;
    SchemaOrder order{};
    SchemaGrammar grammar;

    std::size_t bytes() const;
  };

  SchemaMetrics& metrics_;
  std::list<Entry> entries_;  // newest first
  std::size_t bytes_ = 0;
};

}  // namespace chasqui
