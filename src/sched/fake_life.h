// What the seeded simulation of the scheduler draws, and what it knows of each request it has drawn. One thread.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "core/request.h"
#include "sched/fake_model.h"

namespace chasqui {

// The same numbers with every standard library, which the distributions of <random> do not give.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : generator_(seed) {}
  std::int32_t below(std::int32_t n) { return static_cast<std::int32_t>(generator_() % static_cast<unsigned>(n)); }
  std::int32_t between(std::int32_t low, std::int32_t high) { return low + below(high - low + 1); }
  bool permille(std::int32_t n) { return below(1000) < n; }

 private:
  std::mt19937_64 generator_;
};

// One request as the simulation knows it.
struct Life {
  RequestPtr request;
  FakeScript script;
  std::string answer;  // what it would say with nobody else there
  std::size_t said = 0;
  TokenCount tokens = 0;
  TimePoint last_token{};     // once it has said one
  std::int32_t left_out = 0;  // decode steps in a row that it was not in although it was late
  bool cancelled = false;     // we asked for its end
  bool failed = false;        // its batch failed
  bool ended = false;
};

}  // namespace chasqui
