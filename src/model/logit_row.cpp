#include "model/logit_row.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/mixed_bits.h"

namespace chasqui {
namespace {

constexpr std::size_t kBlock = RowKernels::kBlock;
constexpr std::size_t kGroup = RowKernels::kGroup;
constexpr std::size_t kLanes = 16;

std::size_t rounded_up(std::size_t count, std::size_t to) { return (count + to - 1) / to * to; }

// Numbers in [0, 1), as many as are wanted, that come of one: splitmix64 (Steele, Lea and Flood, 2014).
class Darts {
 public:
  explicit Darts(double seed) : state_(static_cast<std::uint64_t>(seed * 0x1p53)) {}

  double next() {
    state_ += 0x9e3779b97f4a7c15u;
    return static_cast<double>(mixed_bits(state_) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

void LogitRow::begin(std::span<float> logits) {
  logits_ = logits;
  maxima_.resize((logits.size() + kBlock - 1) / kBlock);
  if (!has_rest()) return;
  const auto last = logits.subspan(whole_blocks() * kBlock);
  std::fill(std::copy(last.begin(), last.end(), rest_), rest_ + kBlock, kBanned);
}

void LogitRow::look(std::span<float> logits) {
  begin(logits);
  kernels_->maxima(logits.data(), whole_blocks(), maxima_.data());
  if (has_rest()) kernels_->maxima(rest_, 1, &maxima_.back());
  survey();
}

void LogitRow::look(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  DCHECK(allowed.size() * kBlock >= logits.size());
  begin(logits);
  kernels_->mask(logits.data(), allowed.data(), whole_blocks(), maxima_.data());
  if (has_rest()) {
    kernels_->mask(rest_, allowed.data() + whole_blocks(), 1, &maxima_.back());
    const auto last = logits.subspan(whole_blocks() * kBlock);
    std::copy_n(rest_, last.size(), last.begin());
  }
  survey();
}

// The lowest id among the largest: in the first of the blocks with that maximum.
void LogitRow::survey() {
  largest_ = -1;
  const auto best = std::ranges::max_element(maxima_);
  if (best == maxima_.end() || !(*best > kBanned)) return;
  const auto block = static_cast<std::size_t>(best - maxima_.begin()) * kBlock;
  const auto inside = logits_.subspan(block, std::min(kBlock, logits_.size() - block));
  largest_ = static_cast<Token>(block + static_cast<std::size_t>(std::ranges::find(inside, *best) - inside.begin()));
}

void LogitRow::set(Token token, float logit) {
  const auto place = static_cast<std::size_t>(token);
  const std::size_t block = place / kBlock;
  logits_[place] = logit;
  const bool in_rest = block >= whole_blocks();
  if (in_rest) rest_[place % kBlock] = logit;
  kernels_->maxima(in_rest ? rest_ : logits_.data() + block * kBlock, 1, &maxima_[block]);
  if (token == largest_ || largest_ < 0 || !(logit < logits_[static_cast<std::size_t>(largest_)])) survey();
}

float LogitRow::top() const { return std::min(logits_[static_cast<std::size_t>(largest_)], kMost); }

// Of how far they are below the largest one, so that the squares are small. A piece with logits that are banned, or no
// numbers, is looked at again, one by one.
double LogitRow::deviation() const {
  using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;
  constexpr std::size_t kPiece = 4 * kGroup;
  const float largest = top();
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t begin = 0; begin < logits_.size(); begin += kPiece) {
    const std::span<const float> piece = logits_.subspan(begin, std::min(kPiece, logits_.size() - begin));
    const std::size_t whole = piece.size() / kLanes * kLanes;
    Lanes sums = {};
    Lanes squared = {};
    for (std::size_t i = 0; i < whole; i += kLanes) {
      Lanes values;
      std::memcpy(&values, piece.data() + i, sizeof values);
      const Lanes below = largest - values;
      sums += below;
      squared += below * below;
    }
    double sum_of_piece = 0;
    double squares_of_piece = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum_of_piece += static_cast<double>(sums[lane]);
      squares_of_piece += static_cast<double>(squared[lane]);
    }
    const bool all_count = std::isfinite(squares_of_piece);
    if (all_count) {
      sum += sum_of_piece;
      squares += squares_of_piece;
      count += static_cast<double>(whole);
    }
    for (const float logit : piece.subspan(all_count ? whole : 0)) {
      if (!(logit > kBanned)) continue;
      const auto below = static_cast<double>(largest - std::min(logit, kMost));
      sum += below;
      squares += below * below;
      count += 1;
    }
  }
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean));
}

std::size_t LogitRow::gather(float least, float below) {
  const std::size_t room = rounded_up(logits_.size(), kBlock) + RowKernels::kSlack;
  if (places_.size() < room) places_.resize(room);
  if (found_.size() < room) found_.resize(room);
  std::size_t count =
      kernels_->gather(logits_.data(), maxima_.data(), whole_blocks(), least, below, 0, places_.data(), found_.data());
  if (has_rest()) {
    count +=
        kernels_->gather(rest_, &maxima_.back(), 1, least, below, static_cast<std::uint32_t>(whole_blocks() * kBlock),
                         places_.data() + count, found_.data() + count);
  }
  return count;
}

void LogitRow::at_least(float least, std::vector<Candidate>& out, float below) {
  const std::size_t count = gather(least, below);
  out.resize(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = {static_cast<Token>(places_[i]), std::min(found_[i], kMost), 0.0};
}

LogitRow::Found LogitRow::found(float least) {
  const std::size_t count = gather(least, kNoHigh);
  return {std::span(places_).first(count), std::span(found_).first(count)};
}

// The k-th largest of the largest logits of blocks, or of neighbouring blocks together, which are fewer to look at.
float LogitRow::bound_of(std::size_t k) {
  const std::size_t together = std::clamp<std::size_t>(k > 0 ? maxima_.size() / (4 * k) : 1, 1, 8);
  const std::size_t count = maxima_.size() / together;
  if (k == 0 || k > count) return kLeast;
  coarse_.assign(maxima_.begin(), maxima_.begin() + static_cast<std::ptrdiff_t>(count));
  if (together > 1) {
    for (std::size_t i = 0; i < count; ++i) {
      const float* const from = maxima_.data() + i * together;
      coarse_[i] = *std::max_element(from, from + together);
    }
  }
  const auto kth = coarse_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(coarse_.begin(), kth, coarse_.end(), std::greater<>());
  return std::clamp(*kth, kLeast, kMost);
}

void LogitRow::top_k(std::size_t k, std::vector<Candidate>& out) {
  out.clear();
  if (k == 0 || largest_ < 0) return;
  at_least(bound_of(k), out);
  if (out.size() <= k) return;
  std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(k - 1), out.end(), more_likely);
  out.resize(k);
}

LogitRow::Masses LogitRow::weigh(float least, float scale, float middle, float high, int bounds) {
  const float largest = top();
  const std::size_t whole = whole_blocks();
  sums_.resize((whole * kBlock + kGroup - 1) / kGroup + (has_rest() ? 1 : 0));
  above_.resize(bounds > 1 ? sums_.size() : 0);
  higher_.resize(bounds > 2 ? sums_.size() : 0);
  kernels_->weigh(logits_.data(), maxima_.data(), whole, least, largest, scale, sums_.data(), middle,
                  bounds > 1 ? above_.data() : nullptr, high, bounds > 2 ? higher_.data() : nullptr);
  if (has_rest()) {
    kernels_->weigh(rest_, &maxima_.back(), 1, least, largest, scale, &sums_.back(), middle,
                    bounds > 1 ? &above_.back() : nullptr, high, bounds > 2 ? &higher_.back() : nullptr);
  }
  Masses sum;
  for (const float each : sums_) sum.all += static_cast<double>(each);
  for (const float each : above_) sum.above += static_cast<double>(each);
  for (const float each : higher_) sum.higher += static_cast<double>(each);
  return sum;
}

LogitRow::Surprise LogitRow::surprise(float least, float scale) {
  const float largest = top();
  const std::size_t whole = whole_blocks();
  sums_.resize((whole * kBlock + kGroup - 1) / kGroup + (has_rest() ? 1 : 0));
  above_.resize(sums_.size());
  kernels_->surprise(logits_.data(), maxima_.data(), whole, least, largest, scale, sums_.data(), above_.data());
  if (has_rest()) kernels_->surprise(rest_, &maxima_.back(), 1, least, largest, scale, &sums_.back(), &above_.back());
  Surprise out;
  for (const float each : sums_) out.mass += static_cast<double>(each);
  for (const float each : above_) out.below += static_cast<double>(each);
  return out;
}

void LogitRow::cap(float high) {
  kernels_->cap(logits_.data(), maxima_.data(), whole_blocks(), high);
  if (has_rest()) {
    kernels_->cap(rest_, &maxima_.back(), 1, high);
    const auto last = logits_.subspan(whole_blocks() * kBlock);
    std::copy_n(rest_, last.size(), last.begin());
  }
  survey();
}

// At which the sum that weigh() has just made exceeds `part`. The weights of a group add up to its sum but for
// rounding, so the last token of it that weighs anything takes the rest.
Token LogitRow::token_at(double part, float least, float scale) const {
  std::size_t group = 0;
  std::size_t last = 0;
  for (; group < sums_.size(); ++group) {
    if (sums_[group] > 0) last = group;
    if (part < static_cast<double>(sums_[group])) break;
    part -= static_cast<double>(sums_[group]);
  }
  if (group == sums_.size()) group = last;
  const bool in_rest = has_rest() && group + 1 == sums_.size();
  const std::size_t first = in_rest ? whole_blocks() * kBlock : group * kGroup;
  const std::size_t end = in_rest ? logits_.size() : std::min(first + kGroup, whole_blocks() * kBlock);
  alignas(64) float inside[kGroup];
  const std::size_t count = rounded_up(end - first, kLanes);
  std::fill(inside, inside + count, kBanned);
  for (std::size_t i = first; i < end; ++i) {
    if (logits_[i] >= least) inside[i - first] = logits_[i];
  }
  float weighed[kGroup];
  kernels_->weights(inside, count, top(), scale, weighed);
  Token token = largest_;
  for (std::size_t i = 0; i < end - first; ++i) {
    if (!(weighed[i] > 0)) continue;
    token = static_cast<Token>(first + i);
    part -= static_cast<double>(weighed[i]);
    if (part < 0) break;
  }
  return token;
}

// Darts at a skyline, in which each block is a house as high as its largest token weighs, and as wide as it has tokens.
// A token is hit where the dart is below its own weight. The largest tokens fill their places, so that one dart in 64
// hits at least, whatever the row is; in most rows one in three to one in thirty. Few blocks are summed up instead, so
// that what is drawn of few tokens does not depend on where in a row they are.
Token LogitRow::draw(float least, float scale, double drawn) {
  constexpr std::size_t kDarts = 64 * kBlock;  // that all of them miss comes once in 10^27 rows
  constexpr std::ptrdiff_t kFewBlocks = 256;
  const auto is_there = [least](float largest) { return largest >= least; };
  if (std::ranges::count_if(maxima_, is_there) <= kFewBlocks) return token_at(drawn * mass(least, scale), least, scale);
  const std::span<const float> heights = weights(maxima_, scale);
  ends_.resize(heights.size());
  double end = 0;
  for (std::size_t i = 0; i < heights.size(); ++i) {
    end += maxima_[i] >= least ? static_cast<double>(heights[i]) : 0.0;
    ends_[i] = end;
  }
  Darts darts(drawn);
  for (std::size_t dart = 0; dart < kDarts; ++dart, drawn = darts.next()) {
    const double at = drawn * end;
    const auto block = static_cast<std::size_t>(std::ranges::upper_bound(ends_, at) - ends_.begin());
    if (block == ends_.size()) continue;  // it was rounded up
    const auto height = static_cast<double>(heights[block]);
    const double across = (ends_[block] - at) / height * static_cast<double>(kBlock);
    const std::size_t place = std::min(static_cast<std::size_t>(across), kBlock - 1);
    const std::size_t token = block * kBlock + place;
    if (token >= logits_.size() || !(logits_[token] >= least)) continue;
    const double up = (across - static_cast<double>(place)) * height;
    if (up < static_cast<double>(weight(logits_[token], scale))) return static_cast<Token>(token);
  }
  return largest_;
}

// As weights() says it: to the bit.
float LogitRow::weight(float logit, float scale) const {
  alignas(64) float lanes[kLanes];
  alignas(64) float out[kLanes];
  std::fill(lanes, lanes + kLanes, kBanned);
  lanes[0] = logit;
  kernels_->weights(lanes, kLanes, top(), scale, out);
  return out[0];
}

std::span<const float> LogitRow::sample(std::size_t most) {
  sample_.clear();
  const std::size_t pieces = logits_.size() / kLanes;
  const std::size_t every = std::max<std::size_t>(1, logits_.size() / most);
  for (std::size_t piece = 0; piece < pieces; piece += every) {
    const float* const from = logits_.data() + piece * kLanes;
    sample_.insert(sample_.end(), from, from + kLanes);
  }
  return sample_;
}

std::span<const float> LogitRow::weights(std::span<const float> logits, float scale) {
  weighed_.resize(rounded_up(logits.size(), kLanes));
  const std::size_t whole = logits.size() / kLanes * kLanes;
  kernels_->weights(logits.data(), whole, top(), scale, weighed_.data());
  if (whole < logits.size()) {
    float rest[kLanes];
    std::fill(std::copy(logits.begin() + static_cast<std::ptrdiff_t>(whole), logits.end(), rest), rest + kLanes,
              kBanned);
    kernels_->weights(rest, kLanes, top(), scale, weighed_.data() + whole);
  }
  return std::span<const float>(weighed_).first(logits.size());
}

float LogitRow::scale_of(double temperature) {
  constexpr double kSteepest = 1e30;
  return static_cast<float>(std::min(1 / temperature, kSteepest));
}

Token largest(std::span<float> logits) {
  thread_local LogitRow row;
  row.look(logits);
  return row.largest();
}

}  // namespace chasqui
