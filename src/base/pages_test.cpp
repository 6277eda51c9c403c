#include "base/pages.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace chasqui {
namespace {

TEST(Pages, HoldAsManyBytesAsWereAskedFor) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, Pages::kOwnMapping - 1, Pages::kOwnMapping,
                                 Pages::kOwnMapping + 1, std::size_t{3} << 20}) {
    Pages pages(size);
    ASSERT_EQ(pages.bytes().size(), size);
    std::ranges::fill(pages.bytes(), std::byte{7});
    EXPECT_TRUE(std::ranges::all_of(std::as_const(pages).bytes(), [](std::byte each) { return each == std::byte{7}; }));
  }
}

TEST(Pages, MoveWithTheirBytes) {
  Pages first(Pages::kOwnMapping);
  const std::byte* const where = first.bytes().data();
  const Pages second = std::move(first);
  EXPECT_EQ(second.bytes().data(), where);
  EXPECT_EQ(second.bytes().size(), Pages::kOwnMapping);
}

TEST(Pages, LargeOnesGoBackToTheSystemAtOnce) {
  const std::byte* where = nullptr;
  {
    Pages pages(std::size_t{1} << 20);
    where = pages.bytes().data();
    unsigned char resident = 0;
    EXPECT_EQ(::mincore(const_cast<std::byte*>(where), 4096, &resident), 0);
    EXPECT_EQ(resident & 1, 1) << "its pages are there before the first write";
  }
  unsigned char resident = 0;
  EXPECT_NE(::mincore(const_cast<std::byte*>(where), 4096, &resident), 0) << "no mapping any more";
}

TEST(Pages, WhatTheSystemDoesNotHaveIsAnExceptionOrNothing) {
  constexpr std::size_t kMoreThanThereIs = std::numeric_limits<std::size_t>::max() / 2;
  EXPECT_THROW(Pages{kMoreThanThereIs}, std::bad_alloc);
  EXPECT_FALSE(Pages::if_there_are(kMoreThanThereIs));
  ASSERT_TRUE(Pages::if_there_are(Pages::kOwnMapping));
  EXPECT_EQ(Pages::if_there_are(Pages::kOwnMapping)->bytes().size(), Pages::kOwnMapping);
}

TEST(Pages, HollowOnesHaveASizeAndTakeNothing) {
  constexpr std::size_t kMoreThanThereIs = std::size_t{1} << 46;
  Pages pages = Pages::hollow(kMoreThanThereIs);
  EXPECT_EQ(pages.bytes().size(), kMoreThanThereIs);
  const Pages moved = std::move(pages);
  EXPECT_EQ(moved.bytes().size(), kMoreThanThereIs);
}

}  // namespace
}  // namespace chasqui
