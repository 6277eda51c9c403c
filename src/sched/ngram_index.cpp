#include "sched/ngram_index.h"

#include <bit>

namespace chasqui {
namespace {

// Places for each token, so that few n-grams push each other out.
constexpr std::size_t kPlacesPerToken = 2;

}  // namespace

// Of the size_ tokens before `end`.
std::uint64_t NgramIndex::hash_of(const Sequence& sequence, TokenCount end) const {
  std::uint64_t hash = 0;
  for (TokenCount i = end - size_; i < end; ++i) {
    hash = (hash ^ static_cast<std::uint32_t>(sequence.token(i))) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

bool NgramIndex::same(const Sequence& sequence, TokenCount end, TokenCount other) const {
  for (TokenCount i = 1; i <= size_; ++i) {
    if (sequence.token(end - i) != sequence.token(other - i)) return false;
  }
  return true;
}

void NgramIndex::make_room(const Sequence& sequence) {
  const auto wanted = kPlacesPerToken * static_cast<std::size_t>(sequence.length());
  if (places_.size() >= wanted) return;
  places_.assign(std::bit_ceil(wanted), 0);
  for (TokenCount end = size_; end <= noted_; ++end) note(sequence, end);
}

// All but the n-gram at the end: that one is looked for.
void NgramIndex::follow(const Sequence& sequence) {
  if (noted_ + 1 >= sequence.length()) return;
  make_room(sequence);
  while (noted_ + 1 < sequence.length()) note(sequence, ++noted_);
}

void NgramIndex::draft(const Sequence& sequence, TokenCount most, std::vector<Token>& out) const {
  out.clear();
  const TokenCount end = sequence.length();
  if (places_.empty() || end <= size_) return;
  const TokenCount place = places_[hash_of(sequence, end) & (places_.size() - 1)];
  if (place == 0 || !same(sequence, end, place)) return;
  for (TokenCount i = 0; i < most; ++i) {
    const Token next = place + i < end ? sequence.token(place + i) : out[static_cast<std::size_t>(place + i - end)];
    if (next < 0) return;  // of a picture or a sound: it is not said
    out.push_back(next);
  }
}

}  // namespace chasqui
