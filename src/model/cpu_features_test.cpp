// The CPU features that CMake chose are the ones that libllama was compiled with: a list that gets lost on the way
// costs half of the speed and no test notices.
#include <string>
#include <string_view>

#include <ggml-cpu.h>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(CpuFeatures, ThoseThatWereChosenAreCompiledIn) {
  struct Feature {
    std::string_view name;
    int (*compiled_in)();
  };
  const Feature features[] = {
      {"AVX", ggml_cpu_has_avx},
      {"AVX2", ggml_cpu_has_avx2},
      {"FMA", ggml_cpu_has_fma},
      {"F16C", ggml_cpu_has_f16c},
      {"AVX512", ggml_cpu_has_avx512},
      {"AVX512_VNNI", ggml_cpu_has_avx512_vnni},
      {"AVX512_VBMI", ggml_cpu_has_avx512_vbmi},
      {"AVX512_BF16", ggml_cpu_has_avx512_bf16},
  };
  const std::string chosen = std::string(",") + CHASQUI_GGML_OPTIONS + ",";
  if (chosen == ",,") GTEST_SKIP() << "ggml's own baseline";
  for (const Feature& feature : features) {
    const bool wanted = chosen.find(",GGML_" + std::string(feature.name) + "=ON,") != std::string::npos;
    EXPECT_EQ(feature.compiled_in() != 0, wanted) << feature.name << " of " << chosen;
  }
}

}  // namespace
}  // namespace chasqui
