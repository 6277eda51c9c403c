// The clients of a Simulation: they come, are refused and come again, leave early, and end.
#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/simulation.h"

namespace chasqui {
namespace {

// A prompt of its own after the prefix that it shares with others.
std::vector<Token> make_prompt(const PlannedRequest& plan, std::string_view prefix, std::uint64_t serial) {
  std::vector<Token> prompt(static_cast<std::size_t>(plan.prompt));
  const auto fill = [&prompt](std::size_t from, std::size_t to, std::uint64_t state) {
    for (std::size_t i = from; i < to; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      prompt[i] = static_cast<Token>((state >> 33) % static_cast<std::uint64_t>(kSimulatedVocabulary));
    }
  };
  const auto shared = static_cast<std::size_t>(plan.prefix_tokens);
  fill(0, shared, extend_text(0, prefix));
  fill(shared, prompt.size(), mix_bits(serial << 20));
  return prompt;
}

}  // namespace

// Reads the workload one request ahead.
void Simulation::plan_next() {
  planned_.emplace();
  if (workload_.next(*planned_)) {
    queue_.add(kStart + planned_->at, Due::Kind::arrival);
  } else {
    planned_.reset();
  }
}

// What happens outside until `end`, also while a step is computed: then a request that cuts it is the last, and its
// time is returned. Else `end`.
TimePoint Simulation::meanwhile(TimePoint end) {
  computing_ = end > now_ + Duration(1);
  TimePoint ends = end;
  while (ends == end && !queue_.empty() && queue_.next() < end) {
    newest_class_ = kServiceClasses;
    handle(queue_.take());
    if (computing_ && newest_class_ <= batch_.cut_by) ends = std::max(at_, now_);
  }
  computing_ = false;
  return ends;
}

void Simulation::handle(const Due& due) {
  at_ = due.at;
  if (due.kind == Due::Kind::arrival) return arrive(due.place);
  SimRequest& life = lives_.at(due.place);
  if (life.serial != due.serial) return;  // it has ended
  if (due.kind == Due::Kind::leaving) {
    leave(life);
  } else if (!life.accepted) {
    try_door(life);
  }
}

void Simulation::arrive(std::uint32_t client) {
  PlannedRequest plan;
  if (config_.clients.clients > 0) {
    if (!workload_.next(plan)) return;
    workload_.give_to(plan, client, static_cast<std::uint32_t>(config_.clients.clients));
  } else {
    plan = *planned_;
    plan_next();
  }
  SimRequest& life = lives_.take();
  life.serial = ++serials_;
  life.plan = plan;
  life.client = client;
  life.first_try = at_;
  statistics_.arrived(life);
  if (plan.leaving == Leaving::after_ms) {
    queue_.add(at_ + milliseconds(plan.leaves_after), Due::Kind::leaving, life.serial, life.place);
  }
  try_door(life);
}

void Simulation::try_door(SimRequest& life) {
  const std::optional<Duration> come_again = gate_.refusal(life.permit, life.plan, life.serial, at_);
  if (!come_again) return submit(life);
  statistics_.refused(life);
  faults_.expect(*come_again > Duration::zero(), "admission: refused without a time to come again", life.serial);
  if (++life.tries >= config_.clients.tries_max) return end(life, Outcome::refused);
  // As told, or a little later.
  const double wait = static_cast<double>(come_again->count()) * (1 + 0.1 * client_dice_.unit());
  queue_.add(at_ + Duration(static_cast<std::int64_t>(wait)), Due::Kind::another_try, life.serial, life.place);
}

void Simulation::submit(SimRequest& life) {
  const PlannedRequest& plan = life.plan;
  RequestDraft draft;
  draft.prompt = make_prompt(plan, workload_.prefixes()[plan.prefix], life.serial);
  draft.max_tokens = plan.max_tokens >= 0 ? plan.max_tokens : plan.output;
  if (plan.timeout_ms > 0) draft.timeout_ms = plan.timeout_ms;
  draft.service_class = plan.service_class;
  draft.tenant = Tenant{plan.tenant + 1, plan.weight};
  draft.sampling.seed = 1;
  draft.tell_reading = life.serial % 3 == 0;
  RequestLimits limits;
  limits.vocabulary = kSimulatedVocabulary;
  limits.context = config_.scheduler.kv.cells_per_slot;
  Result<RequestPtr> request = make_request(lives_.new_id(life), std::move(draft), limits, at_);
  if (!request) return end(life, Outcome::refused);  // too long for the context

  life.request = std::move(*request);
  life.history = 0;
  for (const Token token : life.request->prompt) life.history = extend_history(life.history, token);
  life.known = plan.prompt;
  life.accepted = true;
  life.let_in = at_;
  newest_class_ = static_cast<int>(plan.service_class);
  ++accepted_;
  watch_.waits(life);
  scheduler_.add(life.request);
}

// The client goes away, wherever its request stands.
void Simulation::leave(SimRequest& life) {
  if (!life.accepted) return end(life, Outcome::cancelled);
  if (computing_) return leave_at(life);
  life.leaves = true;
  const RequestId id = life.request->id;
  scheduler_.cancel(id, now_);
  take_events();
  faults_.expect(lives_.find(id) == nullptr, "one-terminal: a cancel did not end it");
}

// … as soon as the step is done.
void Simulation::leave_at(SimRequest& life) { leaving_.push_back(life.request->id); }

void Simulation::end(SimRequest& life, Outcome outcome) {
  statistics_.ended(life, outcome, now_);
  if (life.accepted) {
    --accepted_;
    watch_.ended(life);
    model_.ended(life);
  }
  const std::uint32_t client = life.client;
  lives_.give_back(life);
  if (config_.clients.clients > 0) {
    queue_.add(std::max(now_, at_) + milliseconds(config_.clients.think_ms.draw(client_dice_)), Due::Kind::arrival, 0,
               client);
  }
}

}  // namespace chasqui
