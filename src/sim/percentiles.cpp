#include "sim/percentiles.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace chasqui {
namespace {

constexpr std::size_t kExactMax = 8192;
// Each power of two has 128 buckets; below 128 µs a bucket is one microsecond.
constexpr int kBits = 7;
constexpr std::size_t kBuckets = static_cast<std::size_t>(64 - kBits) << kBits;

}  // namespace

void Percentiles::add(Duration value) {
  ++count_;
  largest_ = std::max(largest_, value);
  sum_ms_ += to_milliseconds(value);
  if (buckets_.empty()) {
    exact_.push_back(value);
    sorted_ = false;
    if (exact_.size() > kExactMax) fold();
  } else {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, value / microseconds(1)));
    ++buckets_[bucket(us)];
  }
}

void Percentiles::fold() {
  buckets_.resize(kBuckets);
  for (const Duration value : exact_) {
    ++buckets_[bucket(static_cast<std::uint64_t>(std::max<std::int64_t>(0, value / microseconds(1))))];
  }
  exact_ = {};
}

double Percentiles::at(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(count_) - 1e-9);
  const auto rank = static_cast<std::uint64_t>(std::clamp(wanted, 1.0, static_cast<double>(count_)));
  if (buckets_.empty()) {
    if (!sorted_) std::sort(exact_.begin(), exact_.end());
    sorted_ = true;
    return to_milliseconds(exact_[rank - 1]);
  }
  if (rank == count_) return largest();
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if ((seen += buckets_[i]) >= rank) return std::min(middle(i), largest());
  }
  return largest();
}

double Percentiles::mean() const { return count_ > 0 ? sum_ms_ / static_cast<double>(count_) : 0; }

std::size_t Percentiles::bucket(std::uint64_t us) {
  const int octave = static_cast<int>(std::bit_width(us)) - 1 - kBits;
  if (octave < 0) return us;
  const std::uint64_t within = (us >> octave) & ((1u << kBits) - 1);
  return (static_cast<std::size_t>(octave + 1) << kBits) + within;
}

double Percentiles::middle(std::size_t bucket) {
  constexpr std::size_t kPerOctave = 1u << kBits;
  if (bucket < kPerOctave) return static_cast<double>(bucket) / 1000;
  const int octave = static_cast<int>(bucket >> kBits) - 1;
  const auto low = static_cast<double>(kPerOctave + (bucket & (kPerOctave - 1)));
  return std::ldexp(low + 0.5, octave) / 1000;
}

}  // namespace chasqui
