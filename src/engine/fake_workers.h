// What tests of several workers have in common.
#pragma once

#include <string>
#include <string_view>

#include <sched.h>

#include "engine/fake_client.h"

namespace chasqui {

inline ClientConfig workers(std::size_t count, std::int32_t slots = 4) {
  ClientConfig config;
  config.workers = count;
  config.slots = slots;
  return config;
}

// Until the dispatcher has handed out so many, which none of those may have left.
inline void wait_until_placed(FakeClient& client, std::int64_t requests) {
  const Gauge& placed = client.engine.dispatch_metrics().requests;
  const TimePoint hang = RealClock().now() + seconds(60);
  while (placed.value() < requests && RealClock().now() < hang) ::sched_yield();
  EXPECT_EQ(placed.value(), requests);
}

inline std::uint64_t ended(FakeClient& client, std::size_t worker) {
  std::uint64_t count = 0;
  for (const Counter& counter : client.engine.metrics(worker).requests_finished) count += counter.value();
  return count;
}

inline void expect_as_alone(FakeClient& client, const RequestPtr& request) {
  const AloneAnswer alone = answer_alone(*request);
  EXPECT_EQ(client.of(request).text, alone.text) << "request " << request->id.value;
  EXPECT_EQ(client.of(request).tokens, alone.tokens);
  EXPECT_EQ(client.of(request).finished, 1);
  EXPECT_EQ(client.of(request).last.reason, alone.reason);
}

}  // namespace chasqui
