#include "model/trigger_search.h"

#include <algorithm>
#include <utility>

namespace chasqui {
namespace {

using Kind = TriggerPattern::Node::Kind;
using From = TriggerPattern::From;

}  // namespace

TriggerSearch::TriggerSearch(std::shared_ptr<const TriggerPatterns> patterns)
    : patterns_(std::move(patterns)), scans_(patterns_->size()) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < scans_.size(); ++i) {
    scans_[i].begins.assign((*patterns_)[i].nodes().size(), kNone);
    most = std::max(most, scans_[i].begins.size());
  }
  next_.begins.assign(most, kNone);
}

std::vector<TriggerSearch::Piece> TriggerSearch::push(Token token, std::string_view text) {
  const std::size_t at = base_ + text_.size();
  text_ += text;
  places_.push_back({token, at, at + text.size()});
  for (std::size_t i = 0; i < scans_.size(); ++i) {
    const std::size_t begin = (*patterns_)[i].scannable() ? scan(i, text) : base_;
    if (begin == kNone) continue;
    const std::size_t found = find(i, begin);
    if (found != kNone) return pieces_from(found);
  }
  forget();
  return {};
}

// Where the first of what may be matches that end in `text` begins.
std::size_t TriggerSearch::scan(std::size_t pattern, std::string_view text) {
  const TriggerPattern& what = (*patterns_)[pattern];
  Scan& now = scans_[pattern];
  std::size_t found = kNone;
  std::size_t at = base_ + text_.size() - text.size();
  for (const char c : text) {
    ++work_;
    const auto byte = static_cast<unsigned char>(c);
    if (what.first()[byte]) found = std::min(found, enter(what, now, what.begin(), at, at, false));
    ++at;
    for (const TriggerPattern::State state : now.states) {
      ++work_;
      const std::size_t begin = std::exchange(now.begins[state], kNone);
      const TriggerPattern::Node& node = what.nodes()[state];
      if (node.kind != Kind::bytes || !node.bytes[byte] || at - begin > kSpan) continue;
      found = std::min(found, enter(what, next_, node.next, begin, at, false));
    }
    now.states.clear();
    std::swap(now.states, next_.states);
    for (const TriggerPattern::State state : now.states) now.begins[state] = std::exchange(next_.begins[state], kNone);
  }
  for (std::size_t i = 0; i < now.states.size(); ++i) {
    const TriggerPattern::State state = now.states[i];
    if (what.nodes()[state].kind != Kind::text_end) continue;
    found = std::min(found, enter(what, next_, state, now.begins[state], at, true));
  }
  for (const TriggerPattern::State state : next_.states) next_.begins[state] = kNone;
  next_.states.clear();
  return found;
}

// Adds `state`, and what can be reached from it without a byte, to `scan`. Where that is a match, where it begins.
std::size_t TriggerSearch::enter(const TriggerPattern& pattern, Scan& scan, TriggerPattern::State state,
                                 std::size_t begin, std::size_t at, bool text_ends) {
  const TriggerPattern::Node& node = pattern.nodes()[state];
  const std::size_t known = scan.begins[state];
  // One that began too long ago makes room for another.
  if (known == begin || (known < begin && at - known < kSpan)) return kNone;
  ++work_;
  if (known == kNone) scan.states.push_back(state);
  scan.begins[state] = begin;
  switch (node.kind) {
    case Kind::match: return begin;
    case Kind::bytes: return kNone;
    case Kind::both:
      return std::min(enter(pattern, scan, node.next, begin, at, text_ends),
                      enter(pattern, scan, node.other, begin, at, text_ends));
    case Kind::text_begin: return at == 0 ? enter(pattern, scan, node.next, begin, at, text_ends) : kNone;
    case Kind::text_end: return text_ends ? enter(pattern, scan, node.next, begin, at, text_ends) : kNone;
  }
  return kNone;
}

std::size_t TriggerSearch::find(std::size_t pattern, std::size_t begin) {
  const std::string window = text_.substr(begin - base_);
  work_ += window.size();
  const std::size_t found = (*patterns_)[pattern].find(window, begin == 0 ? From::answer_begin : From::within);
  return found == std::string::npos ? kNone : begin + found;
}

std::vector<TriggerSearch::Piece> TriggerSearch::pieces_from(std::size_t begin) const {
  std::vector<Piece> out;
  for (const Place& place : places_) {
    if (place.end <= begin) continue;
    const std::size_t from = std::max(place.begin, begin);
    out.push_back({place.token, text_.substr(from - base_, place.end - from)});
  }
  return out;
}

// What no match can begin with any more, once it is half of the text.
void TriggerSearch::forget() {
  std::size_t needed = base_ + text_.size();
  for (std::size_t i = 0; i < scans_.size(); ++i) {
    if (!(*patterns_)[i].scannable()) return;
    for (const TriggerPattern::State state : scans_[i].states) needed = std::min(needed, scans_[i].begins[state]);
  }
  if (needed - base_ < text_.size() - (needed - base_)) return;
  text_.erase(0, needed - base_);
  base_ = needed;
  std::erase_if(places_, [needed](const Place& place) { return place.end <= needed; });
}

}  // namespace chasqui
