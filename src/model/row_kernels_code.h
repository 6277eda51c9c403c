// The code of RowKernels, for the instruction set that the including file is compiled for. It calls no inline function
// of a header but intrinsics: the linker could take such a function from here for the whole program, which has to run
// on machines without these instructions.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "model/row_kernels.h"

namespace chasqui {
namespace {

// As many values side by side as a register of the instruction set has.
#ifdef __AVX512F__
constexpr std::size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
using Lanes [[gnu::vector_size(kLanes * 4)]] = float;
using Ints [[gnu::vector_size(kLanes * 4)]] = std::int32_t;

constexpr std::size_t kBlock = RowKernels::kBlock;
constexpr std::size_t kBlocksOfGroup = RowKernels::kGroup / kBlock;
constexpr float kNone = -__builtin_inff();

inline Lanes load(const float* from) {
  Lanes out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}
inline void store(float* to, Lanes lanes) { __builtin_memcpy(to, &lanes, sizeof lanes); }
inline Lanes spread(float value) { return value - Lanes{}; }

// Both take b where a is NaN.
#ifdef __AVX512F__
inline Lanes larger(Lanes a, Lanes b) {
  return reinterpret_cast<Lanes>(_mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
inline Lanes smaller(Lanes a, Lanes b) {
  return reinterpret_cast<Lanes>(_mm512_min_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
#else
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
#endif

#ifdef __x86_64__
// By halves, so that sums are added up in the same order whatever the width of a register is.
template <class Fold>
inline float fold_four(__m128 four, Fold fold) {
  four = fold(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(fold(four, _mm_shuffle_ps(four, four, 1)));
}
inline __m128 max_of(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
inline __m128 sum_of(__m128 a, __m128 b) { return _mm_add_ps(a, b); }
#endif

inline float largest_lane(Lanes lanes) {
#ifdef __x86_64__
  __m128 parts[kLanes / 4];
  __builtin_memcpy(parts, &lanes, sizeof parts);
  for (std::size_t half = kLanes / 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) parts[i] = max_of(parts[i], parts[i + half]);
  }
  return fold_four(parts[0], max_of);
#else
  float best = lanes[0];
  for (std::size_t i = 1; i < kLanes; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
#endif
}

// Sixteen sums, in one register or several.
constexpr std::size_t kSums = 16 / kLanes;

inline float sum_up(const Lanes* sums) {
#ifdef __x86_64__
  __m128 parts[4];
  __builtin_memcpy(parts, sums, sizeof parts);
  return fold_four(sum_of(sum_of(parts[0], parts[2]), sum_of(parts[1], parts[3])), sum_of);
#else
  float all[16];
  __builtin_memcpy(all, sums, sizeof all);
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) all[i] += all[i + half];
  }
  return all[0];
#endif
}

// y times 2 to the power of n. REQUIRES: n whole, what comes out is normal
inline Lanes scaled(Lanes y, Lanes n) {
#ifdef __AVX512F__
  return reinterpret_cast<Lanes>(_mm512_scalef_ps(reinterpret_cast<__m512>(y), reinterpret_cast<__m512>(n)));
#else
  const Ints exponent = __builtin_convertvector(n, Ints);
  Ints bits;
  __builtin_memcpy(&bits, &y, sizeof y);
  bits += exponent << 23;
  __builtin_memcpy(&y, &bits, sizeof y);
  return y;
#endif
}

// The nearest whole number. REQUIRES: |x| < 2^22
inline Lanes rounded(Lanes x) {
#ifdef __AVX512F__
  return reinterpret_cast<Lanes>(_mm512_roundscale_ps(reinterpret_cast<__m512>(x), 0));
#else
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23
  return x + kRound - kRound;
#endif
}

// 2 to the power of (logit - top) * scale: of the whole part as an exponent, of the rest, within ±0.5, a polynomial.
inline Lanes weight(Lanes logits, float top, float scale) {
  constexpr float kLowest = -125.0f;
  Lanes x = larger(smaller((logits - top) * scale, Lanes{}), spread(kLowest));
  const Lanes n = rounded(x);
  x -= n;
  Lanes y = x * 1.3264709378e-03f + 9.6715140348e-03f;
  y = y * x + 5.5507338022e-02f;
  y = y * x + 2.4022242055e-01f;
  y = y * x + 6.9314697756e-01f;
  return scaled(y * x + 1.0f, n);
}

constexpr float kBinary = 1.44269504088896341f;  // log2(e)

void maxima(const float* logits, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, logits += kBlock) {
    Lanes one = spread(kNone);
    Lanes two = one;
    for (std::size_t i = 0; i < kBlock; i += 2 * kLanes) {
      one = larger(load(logits + i), one);
      two = larger(load(logits + i + kLanes), two);
    }
    out[block] = largest_lane(larger(one, two));
  }
}

void mask(float* logits, const std::uint64_t* bits, std::size_t blocks, float* out) {
  Ints each{};
  for (std::size_t i = 0; i < kLanes; ++i) each[i] = 1 << i;
  for (std::size_t block = 0; block < blocks; ++block, logits += kBlock) {
    const std::uint64_t word = bits[block];
    Lanes best = spread(kNone);
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      const auto part = static_cast<std::int32_t>(word >> i & ((std::uint64_t{1} << kLanes) - 1));
      Lanes kept = spread(kNone);
      if (part != 0) kept = ((each & part) != 0) ? load(logits + i) : kept;
      store(logits + i, kept);
      best = larger(kept, best);
    }
    out[block] = largest_lane(best);
  }
}

struct Weighing {
  const float* logits;
  const float* maxima;
  std::size_t blocks;
  float least;
  float top;
  float scale;
  float* sums;
  float middle;
  float* above;
  float high;
  float* higher;
};

template <bool kCounts, int kBounds>
void weigh_as(const Weighing& of) {
  std::size_t group = 0;
  for (std::size_t block = 0; block < of.blocks; ++group) {
    Lanes sum[kSums] = {};
    Lanes above[kSums] = {};
    Lanes higher[kSums] = {};
    const std::size_t end = of.blocks - block < kBlocksOfGroup ? of.blocks : block + kBlocksOfGroup;
    for (; block < end; ++block) {
      if (!(of.maxima[block] >= of.least)) continue;
      const float* const at = of.logits + block * kBlock;
      for (std::size_t i = 0; i < kBlock; i += kLanes) {
        const Lanes values = load(at + i);
        const Lanes each = kCounts ? spread(1.0f) : weight(values, of.top, of.scale);
        sum[i / kLanes % kSums] += values >= of.least ? each : Lanes{};
        if (kBounds > 1) above[i / kLanes % kSums] += values >= of.middle ? each : Lanes{};
        if (kBounds > 2) higher[i / kLanes % kSums] += values >= of.high ? each : Lanes{};
      }
    }
    of.sums[group] = sum_up(sum);
    if (kBounds > 1) of.above[group] = sum_up(above);
    if (kBounds > 2) of.higher[group] = sum_up(higher);
  }
}

template <int kBounds>
void weigh_with(const Weighing& of) {
  of.scale == 0 ? weigh_as<true, kBounds>(of) : weigh_as<false, kBounds>(of);
}

void weigh(const float* logits, const float* maxima, std::size_t blocks, float least, float top, float scale,
           float* sums, float middle, float* above, float high, float* higher) {
  const Weighing of = {logits, maxima, blocks, least, top, scale * kBinary, sums, middle, above, high, higher};
  if (above == nullptr) return weigh_with<1>(of);
  higher == nullptr ? weigh_with<2>(of) : weigh_with<3>(of);
}

// Those of a register that count, as bits.
inline std::uint32_t bits_of(Ints counts) {
#ifdef __AVX512F__
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(counts), reinterpret_cast<__m512i>(counts));
#elif defined(__AVX2__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(counts)));
#elif defined(__x86_64__)
  return static_cast<std::uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(counts)));
#else
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kLanes; ++i) bits |= static_cast<std::uint32_t>(counts[i] & 1) << i;
  return bits;
#endif
}

std::size_t gather(const float* logits, const float* maxima, std::size_t blocks, float least, float below,
                   std::uint32_t first, std::uint32_t* places, float* found) {
  std::size_t count = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    if (!(maxima[block] >= least)) continue;
    for (std::size_t i = block * kBlock; i < (block + 1) * kBlock; i += kLanes) {
      const Lanes values = load(logits + i);
      std::uint32_t bits = bits_of((values >= least) & ~(values >= below));
      const auto place = first + static_cast<std::uint32_t>(i);
#ifdef __AVX512F__
      // Also where there is none: a branch would be mispredicted too often.
      const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      const __m512i all = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(place)));
      const auto chosen = static_cast<__mmask16>(bits);
      _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(chosen, all));
      _mm512_storeu_ps(found + count, _mm512_maskz_compress_ps(chosen, reinterpret_cast<__m512>(values)));
      count += static_cast<std::size_t>(__builtin_popcount(bits));
#else
      for (; bits != 0; bits &= bits - 1, ++count) {
        const auto lane = static_cast<std::uint32_t>(__builtin_ctz(bits));
        places[count] = place + lane;
        found[count] = logits[i + lane];
      }
#endif
    }
  }
  return count;
}

void surprise(const float* logits, const float* maxima, std::size_t blocks, float least, float top, float scale,
              float* sums, float* below) {
  constexpr float kNothing = 120;  // 2 to the power of minus this; weight() gives no less than that, however far it is
  scale *= kBinary;
  std::size_t group = 0;
  for (std::size_t block = 0; block < blocks; ++group) {
    Lanes sum[kSums] = {};
    Lanes products[kSums] = {};
    const std::size_t end = blocks - block < kBlocksOfGroup ? blocks : block + kBlocksOfGroup;
    for (; block < end; ++block) {
      if (!(maxima[block] >= least)) continue;
      const float* const at = logits + block * kBlock;
      for (std::size_t i = 0; i < kBlock; i += kLanes) {
        const Lanes values = load(at + i);
        const Lanes each = weight(values, top, scale);
        const Lanes far = larger(top - values, Lanes{});  // +infinity is above
        sum[i / kLanes % kSums] += values >= least ? each : Lanes{};
        products[i / kLanes % kSums] += ((values >= least) & (far * scale < kNothing)) != 0 ? each * far : Lanes{};
      }
    }
    sums[group] = sum_up(sum);
    below[group] = sum_up(products);
  }
}

void cap(float* logits, float* maxima, std::size_t blocks, float high) {
  for (std::size_t block = 0; block < blocks; ++block, logits += kBlock) {
    if (!(maxima[block] >= high)) continue;
    Lanes best = spread(kNone);
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      const Lanes values = load(logits + i);
      const Lanes kept = values >= high ? spread(kNone) : values;
      store(logits + i, kept);
      best = larger(kept, best);
    }
    maxima[block] = largest_lane(best);
  }
}

void weights(const float* logits, std::size_t count, float top, float scale, float* out) {
  scale *= kBinary;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Lanes values = load(logits + i);
    store(out + i, values > kNone ? weight(values, top, scale) : Lanes{});
  }
}

}  // namespace
}  // namespace chasqui
