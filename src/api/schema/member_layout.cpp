#include "api/schema/member_layout.h"

#include <algorithm>
#include <bit>

namespace chasqui {
namespace {

constexpr std::size_t kCountStatesMax = 20'000;  // members times how many there are so far
// In any order there is a rule for each set of members that are there already: 256.
constexpr std::size_t kAnyOrderMax = 8;

// Not worth a rule.
bool is_short(const std::string& body) { return body.find(" | ") == std::string::npos && body.size() < 200; }

}  // namespace

std::uint32_t MemberLayout::counted() const {
  return std::max<std::uint32_t>(1, most_ == GbnfPart::kNoLimit ? least_ : most_);
}

bool MemberLayout::too_large() const { return (members_.size() + 1) * (counted() + 1) > kCountStatesMax; }

bool MemberLayout::room_after(std::uint32_t count) const { return most_ == GbnfPart::kNoLimit || count < most_; }

bool MemberLayout::write(bool repeats, std::string& out) {
  repeats_ = repeats;
  const bool any = rules_.order() == SchemaOrder::any && members_.size() > 1 && members_.size() <= kAnyOrderMax;
  State all = any ? in_any_order() : in_order();
  out = std::move(all.body);
  return all.possible;
}

const std::string& MemberLayout::named(State& state) {
  if (state.name.empty() && !state.body.empty()) state.name = rules_.text().rule(state.body);
  return state.name;
}

std::string MemberLayout::pair(const ObjectMember& member, std::uint32_t count) {
  return separator(count) + gbnf_literal(json_text_of(member.name) + ":") + ' ' + rules_.space() + ' ' + member.value;
}

// What may follow all declared members.
MemberLayout::State MemberLayout::end(std::uint32_t count) {
  if (most_ != GbnfPart::kNoLimit && count > most_) return {};
  const std::uint32_t least = least_ > count ? least_ - count : 0;
  if (other_.empty()) return {.possible = least == 0};
  if (least > 1 && !repeats_) return {};
  const std::uint32_t most = most_ == GbnfPart::kNoLimit ? most_ : most_ - count;
  if (most < least) return {};
  if (most == 0) return {.possible = true};
  const std::string next = "(\",\" " + rules_.space() + ' ' + other_ + ')';
  if (count > 0) return {.possible = true, .body = gbnf_times(next, least, most)};
  const std::uint32_t further = most == GbnfPart::kNoLimit ? most : most - 1;
  const std::string list = other_ + ' ' + gbnf_times(next, least > 0 ? least - 1 : 0, further);
  return {.possible = true, .body = least > 0 ? list : "\"\" | " + list};
}

MemberLayout::State MemberLayout::in_order() {
  std::vector<State> after;
  for (std::uint32_t count = 0; count <= counted(); ++count) after.push_back(end(count));
  for (std::size_t i = members_.size(); i-- > 0;) {
    std::vector<State> here;
    for (std::uint32_t count = 0; count <= counted(); ++count) {
      here.push_back(written_next(i, count, after[count], after[std::min(count + 1, counted())]));
    }
    after = std::move(here);
  }
  return std::move(after[0]);
}

MemberLayout::State MemberLayout::written_next(std::size_t index, std::uint32_t count, State& without, State& with) {
  const ObjectMember& member = members_[index];
  const bool room = room_after(count);
  const std::string text = pair(member, count);
  State out;
  if (room && with.possible && without.possible && &with == &without && !member.required) {
    return {.possible = true, .body = '(' + text + ")? " + named(with)};
  }
  if (room && with.possible) {
    out.possible = true;
    out.body = text + ' ' + (is_short(with.body) ? with.body : named(with));
  }
  if (!member.required && without.possible) {
    const std::string rest = without.body.empty() ? "\"\"" : without.body;
    out.body = out.possible ? out.body + " | " + (count == 0 || without.body.empty() ? rest : named(without)) : rest;
    out.possible = true;
  }
  return out;
}

// From the full set down, so that what follows a set is known when it is written.
MemberLayout::State MemberLayout::in_any_order() {
  std::vector<State> after(std::size_t{1} << members_.size());
  for (std::size_t there = after.size(); there-- > 0;) {
    after[there] = after_set(static_cast<std::uint32_t>(there), after);
  }
  return std::move(after[0]);
}

MemberLayout::State MemberLayout::after_set(std::uint32_t there, std::vector<State>& after) {
  const auto count = static_cast<std::uint32_t>(std::popcount(there));
  State out;
  bool complete = true;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::uint32_t bit = 1u << i;
    if ((there & bit) != 0) continue;
    complete = complete && !members_[i].required;
    State& with = after[there | bit];
    if (!room_after(count) || !with.possible) continue;
    if (out.possible) out.body += " | ";
    out.body += rules_.text().rule(pair(members_[i], count)) + ' ' + named(with);
    out.possible = true;
  }
  if (!complete) return out;
  const State rest = end(count);
  if (!rest.possible) return out;
  if (out.possible) out.body += " | " + (rest.body.empty() ? "\"\"" : rest.body);
  if (!out.possible) out.body = rest.body;
  out.possible = true;
  return out;
}

}  // namespace chasqui
