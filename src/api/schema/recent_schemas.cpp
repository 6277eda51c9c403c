#include "api/schema/recent_schemas.h"

#include <algorithm>

namespace chasqui {

SchemaMetrics& schema_metrics() {
  static SchemaMetrics metrics;
  return metrics;
}

std::size_t RecentSchemas::Entry::bytes() const {
  std::size_t sum = sizeof(Entry) + schema.size() + grammar.text.size();
  for (const std::string& keyword : grammar.dropped) sum += sizeof keyword + keyword.size();
  return sum;
}

Result<SchemaGrammar> RecentSchemas::write(const boost::json::value& schema, const std::string& text,
                                           const std::string& path, bool strict, SchemaOrder order) {
  const auto is_it = [&](const Entry& each) {
    return each.strict == strict && each.order == order && each.schema == text;
  };
  if (const auto known = std::ranges::find_if(entries_, is_it); known != entries_.end()) {
    metrics_.kept.add();
    entries_.splice(entries_.begin(), entries_, known);
    return known->grammar;
  }
  auto written = write_schema_grammar(schema, path, strict, order);
  if (!written) return written;
  metrics_.written.add();
  Entry entry{text, strict, order, *written};
  if (entry.bytes() > kBytesMax) return written;
  bytes_ += entry.bytes();
  entries_.push_front(std::move(entry));
  while (bytes_ > kBytesMax) {
    bytes_ -= entries_.back().bytes();
    entries_.pop_back();
  }
  return written;
}

}  // namespace chasqui
