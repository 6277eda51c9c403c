#include "app/serve_plan.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(ServePlan, AProjectorAttendsAsItsModel) {
  ServeConfig config;
  config.model_path = CHASQUI_SOURCE_DIR "/models/demo/chasqui-demo.gguf";
  for (const FlashAttention choice : {FlashAttention::automatic, FlashAttention::on, FlashAttention::off}) {
    config.model.flash_attention = choice;
    const auto options = plan_model(config);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->media.flash_attention, choice);
  }
}

}  // namespace
}  // namespace chasqui
