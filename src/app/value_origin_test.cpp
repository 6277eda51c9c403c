#include "app/value_origin.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(ValueOrigin, StandsBehindTheMessageAboutItsOption) {
  const ValueOrigins origins = {{"--port", "from LLAMA_ARG_PORT"}, {"--host", "chasqui.toml, line 7"}};
  EXPECT_EQ(origin_note(origins, "--port"), " (from LLAMA_ARG_PORT)");
  EXPECT_EQ(with_origin(invalid_field("--host", "--host nowhere must be an address"), origins).message,
            "--host nowhere must be an address (chasqui.toml, line 7)");
}

TEST(ValueOrigin, IsNotSaidOfWhatWasTyped) {
  EXPECT_EQ(origin_note({}, "--port"), "");
  EXPECT_EQ(with_origin(invalid_field("", "why"), {{"--port", "from LLAMA_ARG_PORT"}}).message, "why");
}

TEST(ValueOrigin, TheOptionIsReadFromAMessage) {
  EXPECT_EQ(option_in("--port: Value http not in range 0 to 65535"), "--port");
  EXPECT_EQ(option_in("Could not convert: --mlock = perhaps"), "--mlock");
  EXPECT_EQ(option_in("--port"), "--port");
  EXPECT_EQ(option_in("A subcommand is required"), "");
}

}  // namespace
}  // namespace chasqui
