#include "model/llama_places.h"

#include <gtest/gtest.h>

#include "model/llama_runtime.h"

namespace chasqui {
namespace {

// With devices: tests/e2e/rpc.test.mjs, against what libllama says of the same flags.
TEST(LlamaPlaces, AllLayersAndTheOutputAreOnTheCpuWhereNothingElseIs) {
  ASSERT_TRUE(start_llama_runtime());
  if (offloads_to_gpu()) GTEST_SKIP() << "this build has devices";
  for (const std::int32_t gpu_layers : {-1, 0, 3, 100}) {
    const std::vector<LayerRange> ranges = forecast_layers(nullptr, gpu_layers, 8, {});
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].device, "CPU");
    EXPECT_EQ(ranges[0].first, 0);
    EXPECT_EQ(ranges[0].last, 8);
  }
}

// What a GPU is called: tests/e2e has none.
TEST(LlamaPlaces, AnAddressIsWhatTheDevicesOfOneGpuShare) {
  EXPECT_EQ(bus_address("0000:c1:00.0"), "0000:c1:00.0");
  EXPECT_EQ(bus_address("0000:c1:00.0-v1"), "0000:c1:00.0");
  EXPECT_EQ(bus_address(nullptr), "");
}

}  // namespace
}  // namespace chasqui
