// Objects: which members there are, and what each must fit.
#include <algorithm>

#include "api/schema/member_layout.h"
#include "api/schema/schema_rules.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kDeclaredMax = kSizeLimit<"schema_properties">;
constexpr std::size_t kPropertyNameMax = kSizeLimit<"schema_name_bytes">;
constexpr std::size_t kPatternsMax = 4;  // whose names may overlap: each set of them is a case of its own

class ObjectWriter {
 public:
  ObjectWriter(SchemaRules& rules, const SchemaPieces& pieces, const SchemaFacets& facets)
      : rules_(rules), source_(rules.source()), pieces_(pieces), facets_(facets) {}

  std::string write() {
    read_names();
    read_patterns();
    read_constraints_of_names();
    if (source_.failed()) return "";
    std::vector<ObjectMember> members;
    for (const auto& [name, required] : names_) {
      bool fits = !no_names_ && name_facets_.text.has(name);
      if (name_facets_.values) fits = fits && lists(*name_facets_.values, name);
      ObjectMember member{name, fits ? rules_.rule_of(schemas_of(name)) : "", required};
      if (!member.value.empty()) {
        members.push_back(std::move(member));
      } else if (required) {
        return impossible(name);
      }
    }
    const std::string other = other_members();
    if (source_.failed()) return "";
    MemberLayout layout(rules_, std::move(members), other, facets_.members_least, facets_.members_most);
    if (layout.too_large()) return refuse_count("is too large together with its properties");
    std::string body;
    if (!layout.write(false, body)) {
      if (!layout.write(true, body)) return refuse_count("does not fit the properties that there can be");
      drop_count();
    }
    const std::string space = rules_.space();
    return "\"{\" " + space + ' ' + (body.empty() ? "" : rules_.text().rule(body) + ' ' + space + ' ') + "\"}\"";
  }

 private:
  struct Named {
    std::string_view name;
    bool required = false;
  };
  struct PatternOfNames {
    std::string_view written;
    std::shared_ptr<const TextPattern> pattern;
  };

  static bool lists(const std::vector<const json::value*>& values, std::string_view name) {
    return std::ranges::any_of(values, [&](const json::value* value) {
      return value->is_string() && std::string_view(value->get_string()) == name;
    });
  }

  Named& named(std::string_view name, const json::value* schema, std::string_view keyword) {
    const auto known = indices_.find(name);
    if (known != indices_.end()) return names_[known->second];
    if (name.size() > kPropertyNameMax) {
      source_.refuse(schema, keyword, "must have names of at most " + std::to_string(kPropertyNameMax) + " bytes");
    }
    if (names_.size() >= kDeclaredMax) {
      source_.refuse(schema, keyword, "must be an object with at most " + std::to_string(kDeclaredMax) + " members");
    }
    indices_.emplace(name, names_.size());
    return names_.emplace_back(Named{name});
  }

  void read_names() {
    for (const SchemaPiece& piece : pieces_) {
      const json::value* properties = keyword_of(piece.schema, "properties");
      if (properties == nullptr) continue;
      described_ = true;
      if (!properties->is_object()) return source_.refuse(piece.schema, "properties", "must be an object");
      for (const auto& member : properties->get_object()) {
        named(member.key(), piece.schema, "properties");
        if (source_.failed()) return;
      }
    }
    for (const SchemaPiece& piece : pieces_) {
      const json::value* required = keyword_of(piece.schema, "required");
      if (required == nullptr || required->is_bool()) continue;  // of draft 3: within a property
      const auto text = [](const json::value& name) { return name.is_string(); };
      if (!required->is_array() || !std::ranges::all_of(required->get_array(), text)) {
        return source_.refuse(piece.schema, "required", "must be an array of strings");
      }
      for (const json::value& name : required->get_array()) {
        named(name.get_string(), piece.schema, "required").required = true;
        described_ = true;
        if (source_.failed()) return;
      }
    }
  }

  void read_patterns() {
    for (const SchemaPiece& piece : pieces_) {
      const json::value* patterns = keyword_of(piece.schema, "patternProperties");
      if (patterns == nullptr) continue;
      if (!patterns->is_object()) return source_.refuse(piece.schema, "patternProperties", "must be an object");
      for (const auto& member : patterns->get_object()) {
        const std::string_view written = member.key();
        if (std::ranges::find(patterns_, written, &PatternOfNames::written) != patterns_.end()) continue;
        auto pattern = rules_.merger().pattern(piece.schema, "patternProperties", written);
        if (pattern == nullptr) continue;
        if (patterns_.size() == kPatternsMax) {
          source_.drop(piece.schema, "patternProperties", "may have at most 4 patterns");
          break;
        }
        patterns_.push_back({written, std::move(pattern)});
      }
    }
  }

  void read_constraints_of_names() {
    SchemaPieces names;
    for (const SchemaPiece& piece : pieces_) {
      const json::value* schema = keyword_of(piece.schema, "propertyNames");
      if (schema == nullptr) continue;
      names.push_back({source_.child(piece.schema, "propertyNames", *schema)});
      said_names_ = piece.schema;
    }
    if (names.empty()) return;
    if (!rules_.merger().expand(names)) {
      no_names_ = true;
      return;
    }
    for (const SchemaPiece& piece : names) {
      for (const std::string_view keyword : {"anyOf", "oneOf"}) {
        if (keyword_of(piece.schema, keyword) != nullptr) source_.drop(piece.schema, keyword, "is not kept for names");
      }
    }
    name_facets_ = rules_.merger().facets(names);
    if ((name_facets_.types & SchemaFacets::kString) == 0) no_names_ = true;
    // Names that are listed are declared by that, where there may be others at all.
    if (!name_facets_.values || !has_others()) return;
    for (const json::value* value : *name_facets_.values) {
      if (value->is_string()) named(value->get_string(), said_names_, "propertyNames");
    }
  }

  bool has_others() const {
    return !described_ || !patterns_.empty() || std::ranges::any_of(pieces_, [](const SchemaPiece& piece) {
      return keyword_of(piece.schema, "additionalProperties") != nullptr;
    });
  }

  // What the member of that name must fit.
  SchemaPieces schemas_of(std::string_view name) {
    SchemaPieces out;
    const json::value* unevaluated = nullptr;
    for (const SchemaPiece& piece : pieces_) {
      bool declared = false;
      const json::object* properties = object_keyword(piece.schema, "properties");
      if (properties != nullptr && properties->contains(name)) {
        out.push_back({source_.child(piece.schema, "properties", name, properties->at(name))});
        declared = true;
      }
      for (const PatternOfNames& each : patterns_) {
        const json::object* patterns = object_keyword(piece.schema, "patternProperties");
        if (patterns == nullptr || !patterns->contains(each.written) || !each.pattern->matches(name)) continue;
        out.push_back({source_.child(piece.schema, "patternProperties", each.written, patterns->at(each.written))});
        declared = true;
      }
      const json::value* others = keyword_of(piece.schema, "additionalProperties");
      if (!declared && others != nullptr) out.push_back({source_.child(piece.schema, "additionalProperties", *others)});
      const json::value* rest = keyword_of(piece.schema, "unevaluatedProperties");
      if (rest != nullptr && rest->is_bool()) unevaluated = rest;
    }
    if (out.empty() && unevaluated != nullptr) out.push_back({unevaluated});
    return out;
  }

  std::string impossible(std::string_view name) {
    for (const SchemaPiece& piece : pieces_) {
      const json::object* properties = object_keyword(piece.schema, "properties");
      if (pieces_.size() != 1 || source_.failed()) break;
      const bool declared = properties != nullptr && properties->contains(name);
      const json::value* at =
          declared ? source_.child(piece.schema, "properties", name, properties->at(name)) : piece.schema;
      source_.refuse(at, declared ? "" : "required", "asks for a member that nothing fits");
    }
    return "";
  }

  // A rule for a member whose name is not declared; empty: there are none.
  std::string other_members() {
    if (no_names_ || name_facets_.values) return "";
    std::string body;
    for (unsigned which = 0; which < 1u << patterns_.size() && !source_.failed(); ++which) {
      const std::string one = others_of(which);
      if (one.empty()) continue;
      if (!body.empty()) body += " | ";
      body += one;
    }
    return body.empty() ? "" : rules_.text().rule(body);
  }

  // Those that match just these patterns of patternProperties.
  std::string others_of(unsigned which) {
    SchemaPieces schemas;
    bool covered = which != 0 || (!described_ && patterns_.empty());
    for (const SchemaPiece& piece : pieces_) {
      const json::object* patterns = object_keyword(piece.schema, "patternProperties");
      bool declared = false;
      for (std::size_t i = 0; i < patterns_.size(); ++i) {
        const std::string_view written = patterns_[i].written;
        if ((which >> i & 1) == 0 || patterns == nullptr || !patterns->contains(written)) continue;
        schemas.push_back({source_.child(piece.schema, "patternProperties", written, patterns->at(written))});
        declared = true;
      }
      const json::value* others = keyword_of(piece.schema, "additionalProperties");
      const json::value* unevaluated = keyword_of(piece.schema, "unevaluatedProperties");
      if (!declared && others != nullptr) {
        if (!others->is_bool() && !others->is_object()) {
          source_.refuse(piece.schema, "additionalProperties", "must be true, false or a schema");
          return "";
        }
        schemas.push_back({source_.child(piece.schema, "additionalProperties", *others)});
        covered = true;
      } else if (which == 0 && unevaluated != nullptr && unevaluated->is_bool() && !unevaluated->get_bool()) {
        return "";
      }
    }
    if (!covered) return "";
    const std::string value = rules_.rule_of(std::move(schemas));
    if (value.empty()) return "";
    const std::string name = free_name(which);
    return name.empty() ? "" : name + " \":\" " + rules_.space() + ' ' + value;
  }

  std::string free_name(unsigned which) {
    TextLanguage language = name_facets_.text;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      ((which >> i & 1) != 0 ? language.must : language.must_not).push_back(patterns_[i].pattern);
    }
    if (!names_.empty()) {
      std::vector<std::string_view> declared;
      for (const Named& each : names_) declared.push_back(each.name);
      language.must_not.push_back(std::make_shared<const TextPattern>(TextPattern::one_of(declared)));
    }
    std::string expression;
    const Written written = write_text_language(language, rules_.text(), expression);
    if (written == Written::yes) return SchemaRules::quoted(expression);
    if (written == Written::too_large) {
      source_.refuse(pieces_.front().schema, patterns_.empty() ? "additionalProperties" : "patternProperties",
                     "is too complex beside the declared properties");
    }
    return "";
  }

  std::string refuse_count(const std::string& why) {
    for (const SchemaPiece& piece : pieces_) {
      for (const std::string_view keyword : {"minProperties", "maxProperties"}) {
        if (pieces_.size() == 1 && keyword_of(piece.schema, keyword) != nullptr) {
          source_.refuse(piece.schema, keyword, why);
        }
      }
    }
    return "";
  }

  void drop_count() {
    for (const SchemaPiece& piece : pieces_) {
      if (keyword_of(piece.schema, "minProperties") == nullptr) continue;
      source_.drop(piece.schema, "minProperties",
                   "above one more than the declared properties is counted, but a name might be written again: keyword "
                   "minProperties");
    }
  }

  SchemaRules& rules_;
  SchemaSource& source_;
  const SchemaPieces& pieces_;
  const SchemaFacets& facets_;
  std::vector<Named> names_;
  std::map<std::string_view, std::size_t> indices_;
  std::vector<PatternOfNames> patterns_;
  SchemaFacets name_facets_;
  const json::value* said_names_ = nullptr;
  bool described_ = false;  // names are declared
  bool no_names_ = false;   // none fits propertyNames
};

}  // namespace

std::string object_body(SchemaRules& rules, const SchemaPieces& pieces, const SchemaFacets& facets) {
  return ObjectWriter(rules, pieces, facets).write();
}

}  // namespace chasqui
