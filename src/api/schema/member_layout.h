// How the members of an object may follow each other: the declared ones in the order in which the schema names them, or
// in any, then others where there are some. Lives as long as one object is being written; one thread.
//
// bounded: states of counts by kCountStatesMax, sets of members that are there already by kAnyOrderMax.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema_rules.h"

namespace chasqui {

struct ObjectMember {
  std::string_view name;
  std::string value;  // a rule
  bool required = false;
};

// Counts are kept by a state for each number of members so far, as far as a bound needs it.
class MemberLayout {
 public:
  // `other`: a rule for a member of a free name; empty: there are none. `most` may be GbnfPart::kNoLimit.
  MemberLayout(SchemaRules& rules, std::vector<ObjectMember> members, std::string other, std::uint32_t least,
               std::uint32_t most)
      : rules_(rules), members_(std::move(members)), other_(std::move(other)), least_(least), most_(most) {}

  bool too_large() const;
  // Alternatives of GBNF for what stands between the braces; false: no number of members fits. Several members of free
  // names might be one name written again; `repeats` says that they may all the same.
  bool write(bool repeats, std::string& out);

 private:
  struct State {
    bool possible = false;
    std::string body = {};  // alternatives
    std::string name = {};  // of the rule with that body, once there is one; empty for an empty body
  };

  std::uint32_t counted() const;
  bool room_after(std::uint32_t count) const;
  std::string separator(std::uint32_t count) { return count == 0 ? "" : "\",\" " + rules_.space() + ' '; }
  std::string pair(const ObjectMember& member, std::uint32_t count);
  const std::string& named(State& state);
  State end(std::uint32_t count);
  State written_next(std::size_t index, std::uint32_t count, State& without, State& with);
  State in_order();
  State in_any_order();
  State after_set(std::uint32_t there, std::vector<State>& after);

  SchemaRules& rules_;
  const std::vector<ObjectMember> members_;
  const std::string other_;
  const std::uint32_t least_;
  const std::uint32_t most_;
  bool repeats_ = false;
};

}  // namespace chasqui
