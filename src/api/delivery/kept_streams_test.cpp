#include "api/delivery/kept_streams.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "api/core/fake_node.h"

namespace chasqui {
namespace {

constexpr std::size_t kRing = 1 << 20;
constexpr std::size_t kForgotten = kSizeLimit<"resume_forgotten_bytes">;

TEST(KeptStreams, OfOneThatIsForgottenItsReadersHoldLittle) {
  FakeNode node;
  KeptStreams kept;
  const auto stream = std::make_shared<KeptStream>(node.loop, node.streams, 1, "name", kRing);
  stream->done = true;
  stream->ring.append(std::string(kRing, 'x') + "the end");
  kept.stop(stream);
  EXPECT_EQ(stream->ring.end() - stream->ring.begin(), kForgotten) << "a reader may take hours for it";
  std::string rest;
  stream->ring.copy(stream->ring.begin(), kRing, rest);
  EXPECT_TRUE(rest.ends_with("xthe end")) << "who has read nearly all gets the end";
}

TEST(KeptStreams, WhatIsStoppedWhileItRunsStillSaysItsEnd) {
  FakeNode node;
  KeptStreams kept;
  const auto stream = std::make_shared<KeptStream>(node.loop, node.streams, 1, "name", kRing);
  stream->ring.append(std::string(kRing, 'x'));
  kept.stop(stream);
  stream->ring.append("the end");
  EXPECT_EQ(stream->ring.end(), kRing + 7);
  EXPECT_EQ(stream->ring.end() - stream->ring.begin(), kForgotten);
  std::string rest;
  stream->ring.copy(stream->ring.begin(), kRing, rest);
  EXPECT_TRUE(rest.ends_with("xthe end"));
}

}  // namespace
}  // namespace chasqui
