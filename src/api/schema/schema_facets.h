// Several schemas that a value must fit all at once, as one: allOf, $ref and what stands beside an alternative come
// together here. Only what says something of the value itself; what its members and items must be is read by those who
// write objects and arrays. Lives as long as one schema is being read; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "api/schema/schema_source.h"
#include "model/grammar/number_language.h"
#include "model/grammar/text_language.h"

namespace chasqui {

// A schema of several, and what of it has been turned into other ones already.
struct SchemaPiece {
  // kOuter: it is the schema that the others are parts of, so that they tell what unevaluatedProperties leaves.
  enum Done : std::uint8_t { kReferences = 1, kAnyOf = 2, kOneOf = 4, kOuter = 8 };
  const boost::json::value* schema = nullptr;
  std::uint8_t done = 0;
  auto operator<=>(const SchemaPiece&) const = default;
};
using SchemaPieces = std::vector<SchemaPiece>;

struct SchemaFacets {
  enum Type : unsigned {
    kNull = 1,
    kBoolean = 2,
    kInteger = 4,
    kFraction = 8,  // a number that is not whole
    kString = 16,
    kArray = 32,
    kObject = 64,
    kAll = 127
  };

  unsigned types = kAll;
  std::optional<std::vector<const boost::json::value*>> values;  // of const and enum: no others fit
  NumberLanguage number;
  TextLanguage text;
  std::uint32_t items_least = 0;
  std::uint32_t items_most = GbnfPart::kNoLimit;
  bool items_least_said = false;
  std::uint32_t members_least = 0;
  std::uint32_t members_most = GbnfPart::kNoLimit;
};

class SchemaMerger {
 public:
  explicit SchemaMerger(SchemaSource& source) : source_(source) {}

  // With what $ref and allOf name, without those that say nothing more. False: nothing fits. Mistakes are left in the
  // source.
  bool expand(SchemaPieces& pieces);
  SchemaFacets facets(const SchemaPieces& pieces);
  // Null where it is not kept; that has been noted then.
  std::shared_ptr<const TextPattern> pattern(const boost::json::value* schema, std::string_view keyword,
                                             std::string_view written);

 private:
  void check_keywords(const boost::json::value* schema);
  void take(const boost::json::value* schema, std::string_view keyword, const boost::json::value& value,
            SchemaFacets& out);
  void take_unevaluated(const SchemaPiece& piece);
  bool take_number(const boost::json::value* schema, std::string_view keyword, const boost::json::value& value,
                   SchemaFacets& out);
  void take_bound(const boost::json::value* schema, std::string_view keyword, const boost::json::value& value,
                  SchemaFacets& out);
  void take_text(const boost::json::value* schema, std::string_view keyword, const boost::json::value& value,
                 SchemaFacets& out);
  void take_format(const boost::json::value* schema, const boost::json::value& value, SchemaFacets& out);
  void take_not(const boost::json::value* schema, const boost::json::value& value, SchemaFacets& out);
  void take_type(const boost::json::value* schema, const boost::json::value& value, SchemaFacets& out);
  void take_values(const boost::json::value* schema, std::string_view keyword, const boost::json::value& value,
                   SchemaFacets& out);
  std::optional<std::uint32_t> count(const boost::json::value* schema, std::string_view keyword,
                                     const boost::json::value& value);
  void check_order(const SchemaPieces& pieces, const SchemaFacets& facets);

  SchemaSource& source_;
  std::map<std::string, std::shared_ptr<const TextPattern>, std::less<>> patterns_;
  std::set<const boost::json::value*> checked_;
  std::uint64_t work_ = 0;
};

}  // namespace chasqui
