#include "fill.h"

#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace mkmodel {
namespace {

// A block of 32 elements: the scale as F16, then 32 bytes (Q8_0) or 16 with two elements each (Q4_0).
constexpr std::size_t kScaleBytes = sizeof(ggml_fp16_t);
constexpr std::size_t kPayloadQ8 = 32;
constexpr std::size_t kPayloadQ4 = 16;
// Standard deviations of the payloads below.
constexpr float kDeviationQ8 = 73.47f;  // -127 … 127, 0 twice as likely as the others
constexpr float kDeviationQ4 = 4.18f;   // -7 … 7, likewise

// A block of 256 elements of Q4_K: two scales as F16, eight scales and eight least values of six bits in twelve bytes,
// and two elements a byte. Value: scale * 32 * (0 … 15) - least scale * 30; the least scale is eight times the scale.
constexpr std::size_t kPartsQ4K = 12;
constexpr std::size_t kPayloadQ4K = 128;
constexpr float kLeastQ4K = 8;
constexpr float kDeviationQ4K = 32 * 4.61f;
// One of Q6_K: four and two bits of each element, sixteen scales of eight bits, here 16 or -16 for elements that would
// lean to one side (-32 … 31), and a scale as F16.
constexpr std::size_t kPayloadQ6K = 128 + 64;
constexpr std::size_t kPartsQ6K = 16;
constexpr float kDeviationQ6K = 16 * 18.48f;

// Numbers in -1 … 1 with a variance of 1/3.
float uniform(std::uint32_t bits) { return static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f; }

template <class Write>
void fill_numbers(std::size_t count, float deviation, Random& random, const Write& write) {
  const float scale = deviation * std::sqrt(3.0f);
  for (std::size_t i = 0; i < count; i += 2) {
    const std::uint64_t bits = random.next();
    write(i, scale * uniform(static_cast<std::uint32_t>(bits)));
    if (i + 1 < count) write(i + 1, scale * uniform(static_cast<std::uint32_t>(bits >> 32)));
  }
}

// Makes the payload symmetric around zero, so that no weight matrix has a direction that it prefers.
std::array<std::uint8_t, 256> symmetric(bool two_to_a_byte) {
  std::array<std::uint8_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    if (two_to_a_byte) {
      const unsigned low = (byte & 15) == 0 ? 8 : byte & 15;
      const unsigned high = (byte >> 4) == 0 ? 8 : byte >> 4;
      table[byte] = static_cast<std::uint8_t>(high << 4 | low);
    } else {
      table[byte] = static_cast<std::uint8_t>(byte == 128 ? 0 : byte);
    }
  }
  return table;
}

void fill_blocks(std::size_t payload, float scale, Random& random, std::span<std::byte> out) {
  const ggml_fp16_t half = ggml_fp32_to_fp16(scale);
  const auto table = symmetric(payload == kPayloadQ4);
  const std::size_t block = kScaleBytes + payload;
  for (std::size_t at = 0; at < out.size(); at += block) {
    std::memcpy(&out[at], &half, kScaleBytes);
    for (std::size_t i = 0; i < payload; i += sizeof(std::uint64_t)) {
      const std::uint64_t bits = random.next();
      std::uint8_t bytes[sizeof bits];
      for (std::size_t j = 0; j < sizeof bits; ++j) bytes[j] = table[bits >> (8 * j) & 255];
      std::memcpy(&out[at + kScaleBytes + i], bytes, sizeof bytes);
    }
  }
}

void fill_bytes(Random& random, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = random.next();
    std::memcpy(&out[i], &bits, sizeof bits);
  }
}

void fill_q4_k(float scale, Random& random, std::span<std::byte> out) {
  const ggml_fp16_t scales[2] = {ggml_fp32_to_fp16(scale), ggml_fp32_to_fp16(kLeastQ4K * scale)};
  // Six bits of the first four scales and two of the last, the same of the least values, four bits each of the last.
  constexpr std::uint8_t parts[] = {0xA0, 0x5E, 0xE0};
  for (std::size_t at = 0; at < out.size(); at += sizeof scales + kPartsQ4K + kPayloadQ4K) {
    std::memcpy(&out[at], scales, sizeof scales);
    for (std::size_t i = 0; i < kPartsQ4K; ++i) out[at + sizeof scales + i] = std::byte{parts[i / 4]};
    fill_bytes(random, out.subspan(at + sizeof scales + kPartsQ4K, kPayloadQ4K));
  }
}

void fill_q6_k(float scale, Random& random, std::span<std::byte> out) {
  const ggml_fp16_t half = ggml_fp32_to_fp16(scale);
  for (std::size_t at = 0; at < out.size(); at += kPayloadQ6K + kPartsQ6K + sizeof half) {
    fill_bytes(random, out.subspan(at, kPayloadQ6K));
    const std::uint64_t signs = random.next();
    for (std::size_t i = 0; i < kPartsQ6K; ++i) {
      out[at + kPayloadQ6K + i] = static_cast<std::byte>((signs >> i & 1) != 0 ? 16 : -16);
    }
    std::memcpy(&out[at + kPayloadQ6K + kPartsQ6K], &half, sizeof half);
  }
}

void fill_random(const TensorPlan& tensor, Random& random, std::span<std::byte> out) {
  switch (tensor.type) {
    case GGML_TYPE_F32:
      return fill_numbers(out.size() / sizeof(float), tensor.value, random, [&](std::size_t i, float value) {
        std::memcpy(&out[i * sizeof value], &value, sizeof value);
      });
    case GGML_TYPE_F16:
      return fill_numbers(out.size() / kScaleBytes, tensor.value, random, [&](std::size_t i, float value) {
        const ggml_fp16_t half = ggml_fp32_to_fp16(value);
        std::memcpy(&out[i * sizeof half], &half, sizeof half);
      });
    case GGML_TYPE_Q8_0: return fill_blocks(kPayloadQ8, tensor.value / kDeviationQ8, random, out);
    case GGML_TYPE_Q4_0: return fill_blocks(kPayloadQ4, tensor.value / kDeviationQ4, random, out);
    case GGML_TYPE_Q4_K: return fill_q4_k(tensor.value / kDeviationQ4K, random, out);
    case GGML_TYPE_Q6_K: return fill_q6_k(tensor.value / kDeviationQ6K, random, out);
    default: throw std::invalid_argument(std::string("no random ") + ggml_type_name(tensor.type));
  }
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

void fill(const TensorPlan& tensor, Random& random, std::span<std::byte> out) {
  if (tensor.fill == TensorPlan::Fill::random) return fill_random(tensor, random, out);
  const auto states = static_cast<std::size_t>(tensor.extents.front());
  for (std::size_t i = 0; i < out.size() / sizeof(float); ++i) {
    const bool decay = tensor.fill == TensorPlan::Fill::state_decay;
    const float value = decay ? -static_cast<float>(i % states + 1) : tensor.value;
    std::memcpy(&out[i * sizeof value], &value, sizeof value);
  }
}

}  // namespace mkmodel
