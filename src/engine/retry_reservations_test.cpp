#include "engine/retry_reservations.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr TimePoint kOpened{};

Reservation reservation(RequestHash request_hash, int hold_from, int due, int expires) {
  return {request_hash, kOpened, kOpened + seconds(hold_from), kOpened + seconds(due), kOpened + seconds(expires),
          false};
}

TEST(RetryReservations, HoldsAPlaceFromItsTimeUntilItExpires) {
  RetryReservations book(10);
  book.add(reservation(1, 5, 6, 8));
  EXPECT_EQ(book.advance(kOpened + seconds(4)).reservations, 0u);
  EXPECT_EQ(book.held(), 0u);
  EXPECT_EQ(book.advance(kOpened + seconds(5)).reservations, 0u);
  EXPECT_EQ(book.held(), 1u);
  EXPECT_EQ(book.advance(kOpened + seconds(8)).reservations, 1u);
  EXPECT_EQ(book.held(), 0u);
  EXPECT_EQ(book.open(), 0u);
  EXPECT_EQ(book.first(1), nullptr);
}

TEST(RetryReservations, KeepsSeveralPromisesForEqualRequestsInOrder) {
  RetryReservations book(10);
  book.add(reservation(7, 3, 4, 9));
  book.add(reservation(7, 1, 2, 9));
  book.add(reservation(7, 1, 2, 9));
  book.add(reservation(8, 0, 1, 9));
  EXPECT_EQ(book.first(7)->due, kOpened + seconds(2));
  EXPECT_EQ(book.last(7)->due, kOpened + seconds(4));
  EXPECT_EQ(book.first(6), nullptr);
  EXPECT_EQ(book.last(6), nullptr);
  EXPECT_EQ(book.last(9), nullptr);
  book.advance(kOpened + seconds(1));
  EXPECT_EQ(book.held(), 3u);
  book.remove(*book.first(7));
  book.remove(*book.last(7));
  EXPECT_EQ(book.open(), 2u);
  EXPECT_EQ(book.held(), 2u);
  EXPECT_EQ(book.first(7), book.last(7));
}

TEST(RetryReservations, KnowsWhoNeverCame) {
  RetryReservations book(10);
  book.add(reservation(1, 1, 2, 3));
  Reservation late = reservation(2, 1, 2, 3);
  late.late = true;
  book.add(late);
  const RetryReservations::Expired expired = book.advance(kOpened + seconds(3));
  EXPECT_EQ(expired.reservations, 2u);
  EXPECT_EQ(expired.never_came, 1u);
}

TEST(RetryReservations, IsBounded) {
  RetryReservations book(2);
  book.add(reservation(1, 1, 2, 3));
  book.add(reservation(1, 1, 2, 3));
  EXPECT_TRUE(book.full());
  EXPECT_EQ(book.advance(kOpened + seconds(3)).reservations, 2u);
  EXPECT_FALSE(book.full());
}

}  // namespace
}  // namespace chasqui
