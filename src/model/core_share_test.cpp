#include "model/core_share.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr TimePoint kStart = TimePoint(seconds(1000));

TEST(CoreShare, OneAloneGetsAllCores) {
  CoreShare share(8, 2);
  CoreShare::Place one(share);
  const CoreShare::Place idle(share);
  EXPECT_EQ(share.part(kStart), 8);
  one.begin_decode();
  EXPECT_EQ(share.part(kStart), 8);
}

TEST(CoreShare, ThoseThatComputeGetEqualParts) {
  CoreShare share(8, 3);
  CoreShare::Place one(share);
  CoreShare::Place two(share);
  CoreShare::Place three(share);
  one.begin_decode();
  two.begin_decode();
  EXPECT_EQ(share.part(kStart), 4);
  three.begin_decode();
  EXPECT_EQ(share.part(kStart), 2);
}

TEST(CoreShare, ContextCountsBetweenItsDecodesAndNotLongAfterTheLast) {
  CoreShare share(4, 2);
  CoreShare::Place one(share);
  CoreShare::Place two(share);
  one.begin_decode();
  two.begin_decode();
  two.end_decode(kStart);
  EXPECT_EQ(share.part(kStart + CoreShare::kLinger / 2), 2);
  EXPECT_EQ(share.part(kStart + CoreShare::kLinger), 4);
}

TEST(CoreShare, PartIsOneAtLeast) {
  CoreShare share(2, 3);
  CoreShare::Place one(share);
  CoreShare::Place two(share);
  CoreShare::Place three(share);
  one.begin_decode();
  two.begin_decode();
  three.begin_decode();
  EXPECT_EQ(share.part(kStart), 1);
  const CoreShare::Taken loading(share);
  EXPECT_EQ(share.part(kStart), 1);
}

TEST(CoreShare, WhatLoadsTakesOneCoreNotAPart) {
  CoreShare share(8, 2);
  CoreShare::Place one(share);
  one.begin_decode();
  {
    const CoreShare::Taken loading(share);
    EXPECT_EQ(share.part(kStart), 7);
  }
  EXPECT_EQ(share.part(kStart), 8);
}

TEST(CoreShare, WhatGivesWayGetsAllCoresWhileNoContextComputes) {
  CoreShare share(8, 2);
  CoreShare::Place one(share);
  const CoreShare::Beside embedder(share);
  EXPECT_EQ(share.spare(kStart), 8);
  {
    const CoreShare::Beside another(share);
    const CoreShare::Taken loading(share);
    EXPECT_EQ(share.spare(kStart), 3);
  }
  one.begin_decode();
  EXPECT_EQ(share.spare(kStart), 1);
  EXPECT_EQ(share.part(kStart), 8) << "the context notices nothing of it";
  one.end_decode(kStart);
  EXPECT_EQ(share.spare(kStart + CoreShare::kLinger / 2), 1) << "the next decode follows most of the time";
  EXPECT_EQ(share.spare(kStart + CoreShare::kLinger), 8);
}

TEST(CoreShare, PlaceIsFreeForTheNextContext) {
  CoreShare share(4, 1);
  for (int i = 0; i < 3; ++i) {
    CoreShare::Place one(share);
    one.begin_decode();
    EXPECT_EQ(share.part(kStart), 4);
  }
  EXPECT_EQ(share.part(kStart), 4);
}

}  // namespace
}  // namespace chasqui
