// The pages that the system is asked for where libllama keeps weights in memory of their own.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

// What the system says of the mapping that has this address: "rd wr mr mw me ac hg", where "hg" means large pages.
std::string flags_of_mapping(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream mappings("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(mappings, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') here = begin <= at && at < end;
    if (here && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

TEST(WeightPages, AreLargeForWeightsAlone) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "this system has none";
  constexpr std::size_t size = std::size_t{64} << 20;
  const std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)> buffer(
      ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size), ggml_backend_buffer_free);
  const char* middle = static_cast<const char*>(ggml_backend_buffer_get_base(buffer.get())) + size / 2;
  const auto large = [middle] { return flags_of_mapping(middle).find(" hg") != std::string::npos; };
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_COMPUTE);
  EXPECT_FALSE(large());
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  EXPECT_TRUE(large()) << flags_of_mapping(middle);
}

}  // namespace
}  // namespace chasqui
