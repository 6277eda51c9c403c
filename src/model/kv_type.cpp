#include "model/kv_type.h"

#include <array>
#include <utility>

#include <ggml.h>

#include "base/error.h"

namespace chasqui {
namespace {

constexpr std::array kGgmlTypes = {
    std::pair{KvType::f16, GGML_TYPE_F16},       std::pair{KvType::q8_0, GGML_TYPE_Q8_0},
    std::pair{KvType::f32, GGML_TYPE_F32},       std::pair{KvType::bf16, GGML_TYPE_BF16},
    std::pair{KvType::q4_0, GGML_TYPE_Q4_0},     std::pair{KvType::q4_1, GGML_TYPE_Q4_1},
    std::pair{KvType::iq4_nl, GGML_TYPE_IQ4_NL}, std::pair{KvType::q5_0, GGML_TYPE_Q5_0},
    std::pair{KvType::q5_1, GGML_TYPE_Q5_1},
};

constexpr auto kTypes = [] {
  std::array<KvType, kGgmlTypes.size()> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = kGgmlTypes[i].first;
  return types;
}();

ggml_type to_ggml(KvType type) {
  const auto index = static_cast<std::size_t>(type);
  CHECK(index < kGgmlTypes.size() && kGgmlTypes[index].first == type, "a KV format without its row");
  return kGgmlTypes[index].second;
}

}  // namespace

std::span<const KvType> kv_types() { return kTypes; }

std::string_view name(KvType type) { return ggml_type_name(to_ggml(type)); }

double bytes_per_value(KvType type) {
  const ggml_type ggml = to_ggml(type);
  return static_cast<double>(ggml_type_size(ggml)) / static_cast<double>(ggml_blck_size(ggml));
}

int ggml_type_of(KvType type) { return to_ggml(type); }

}  // namespace chasqui
