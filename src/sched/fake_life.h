// What the seeded simulation of the scheduler draws, and what it knows of each request it has drawn. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/event.h"
#include "core/fake_requests.h"
#include "core/request.h"
#include "sched/fake_model.h"
#include "sched/scheduler.h"

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
  std::string answer;  // what it would say alone
  std::size_t said = 0;
  TokenCount tokens = 0;
  TimePoint last_token{};     // once it has said one
  std::int32_t left_out = 0;  // decode steps in a row that it was not in although it was late
  bool cancelled = false;     // we asked for its end
  bool failed = false;        // its batch failed
  bool ended = false;
};

inline SchedulerConfig draw_config(Dice& dice, TokenCount context, bool unified) {
  SchedulerConfig config;
  config.kv.slots = dice.between(1, 8);
  config.kv.cells_per_slot = context;
  config.kv.cells = context * (unified ? dice.between(1, config.kv.slots) : config.kv.slots);
  config.kv.unified = unified;
  config.rows_max = config.kv.slots + dice.below(48);
  config.dense_slots = !unified && dice.permille(800);
  for (ClassTarget& target : config.targets.of) {
    target = {milliseconds(dice.between(0, 3000)), milliseconds(dice.between(0, 60))};
  }
  // Background often has less patience than requests live, or it would never be as urgent as others.
  config.targets.prefill_step = milliseconds(dice.between(0, 60));
  if (dice.permille(100)) config.policy = &first_come_policy();
  if (dice.permille(600)) {
    config.speculation.draft_tokens_max = dice.between(1, 8);
    config.speculation.outputs_max = config.kv.slots + dice.below(4 * config.kv.slots);
  }
  return config;
}

inline RequestDraft draw_request(Dice& dice, TokenCount context) {
  RequestDraft draft;
  const TokenCount length = dice.permille(300) ? dice.between(1, context - 1) : dice.between(1, 12);
  draft.prompt = test_prompt(length, static_cast<std::uint64_t>(dice.below(5)));
  const std::int64_t limits[] = {-1, 0, 1, 2, dice.between(1, 20), dice.between(1, 200)};
  draft.max_tokens = limits[dice.below(6)];
  if (dice.permille(150)) draft.timeout_ms = dice.between(1, 400);
  draft.service_class = static_cast<ServiceClass>(dice.below(3));
  draft.tenant.id = static_cast<std::uint32_t>(dice.below(5));
  draft.tenant.weight = 1 + draft.tenant.id;
  draft.sampling.seed = 1;
  if (dice.permille(200)) draft.draft_tokens_max = dice.between(0, 8);
  return draft;
}

// The context of some is shifted, where their answers are to end.
inline RequestPtr draw_life(Dice& dice, std::uint64_t id, TokenCount context, TimePoint now) {
  RequestLimits limits = test_limits();
  limits.context = context;
  RequestDraft draft = draw_request(dice, context);
  limits.shifts = id % 4 == 0 && *draft.max_tokens >= 0;
  return test_request(id, std::move(draft), limits, now);
}

// The same request, whose answer another node has begun, as far as it is long enough: where its script ends it, or its
// context is full, is to come. How many tokens of it forced are told is not the same then, nor where it is shifted.
inline void begin_elsewhere(Life& life, TokenCount context) {
  const Request& request = *life.request;
  if (request.shift_at > 0) return;
  TokenCount most = request.max_tokens - 1;
  if (life.script.end_after > 0) most = std::min(most, life.script.end_after - 1);
  if (life.script.stop_after > 0) most = std::min(most, life.script.stop_after - 1);
  most = std::min(most, context - 1 - request.tokens());
  const auto begun = std::min(most, static_cast<TokenCount>(request.id.value / 5 % 24));
  if (begun <= 0) return;
  Request other = request;
  std::vector<Token> history = request.prompt;
  while (life.tokens < begun) {
    history.push_back(fake_next(history, life.script.repeats));
    other.begun.push_back(history.back());
    ++life.tokens;
  }
  life.said = fake_answer(request, begun, life.script).size();
  life.request = std::make_shared<const Request>(std::move(other));
}

// All that an event says, so that two runs can be compared.
inline std::string line_of(const Event& event, TimePoint now) {
  return std::to_string(event.request.value) + '|' + std::to_string(static_cast<int>(event.kind)) + '|' + event.text +
         '|' + std::to_string(event.tokens) + '|' + std::to_string(static_cast<int>(event.reason)) + '|' +
         event.stop_string + '|' + std::to_string(event.position) + '|' + std::to_string(event.wait.count()) + '|' +
         std::to_string(now.time_since_epoch().count()) + '\n';
}

}  // namespace chasqui
