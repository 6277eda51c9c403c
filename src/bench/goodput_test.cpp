#include "bench/goodput.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

TEST(Goodput, NeedsAllLimits) {
  const auto goodput = parse_goodput("ttft:1000,itl:200");
  ASSERT_TRUE(goodput.has_value());
  EXPECT_TRUE(goodput->met_by({.ttft = 1000, .worst_gap = 200, .tpot = 1e9, .e2e = 1e9}));
  EXPECT_FALSE(goodput->met_by({.ttft = 1001, .worst_gap = 1}));
  EXPECT_FALSE(goodput->met_by({.ttft = 1, .worst_gap = 201}));
  EXPECT_FALSE(parse_goodput("e2e:5")->met_by({.e2e = 6}));
  EXPECT_FALSE(parse_goodput("tpot:5")->met_by({.tpot = 6}));
  EXPECT_FALSE(Goodput{}.any());
  EXPECT_TRUE(Goodput{}.met_by({.ttft = 1e9}));
}

TEST(Goodput, SaysWhatIsAllowed) {
  for (const std::string_view text : {"", "ttft", "ttft:", "ttft:x", "ttft:-1", "speed:1", "ttft:1,"}) {
    const auto goodput = parse_goodput(text);
    ASSERT_FALSE(goodput.has_value()) << text;
    EXPECT_NE(goodput.error().message.find("ttft, itl, tpot or e2e"), std::string::npos);
  }
}

}  // namespace
}  // namespace chasqui::bench
