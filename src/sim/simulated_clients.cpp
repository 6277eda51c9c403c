// The clients of a Simulation: they come, are refused and come again, leave early, and end.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "sim/simulation.h"

namespace chasqui {
namespace {

// A prompt of its own after what was said before, or after the prefix that it shares with others.
std::vector<Token> make_prompt(const PlannedRequest& plan, std::span<const Token> history, std::string_view prefix,
                               std::uint64_t serial) {
  std::vector<Token> prompt(history.begin(), history.end());
  prompt.resize(static_cast<std::size_t>(plan.prompt));
  const auto fill = [&prompt](std::size_t from, std::size_t to, std::uint64_t state) {
    for (std::size_t i = from; i < to; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      prompt[i] = static_cast<Token>((state >> 33) % static_cast<std::uint64_t>(kSimulatedVocabulary));
    }
  };
  const auto shared = static_cast<std::size_t>(plan.prefix_tokens);
  fill(0, shared, extend_text(0, prefix));
  fill(std::max(shared, history.size()), prompt.size(), hash_bits(serial << 20));
  return prompt;
}

// One for each number of a PlannedRequest::adapter.
const std::vector<AdapterSetPtr>& adapter_sets() {
  static const std::vector<AdapterSetPtr> sets = [] {
    std::vector<AdapterSetPtr> all;
    for (std::int32_t i = 0; i < PlannedRequest::kAdaptersMax; ++i) {
      all.push_back(std::make_shared<AdapterSet>(AdapterSet{hash_bits(static_cast<std::uint64_t>(i) + 77), {{i, 1}}}));
    }
    return all;
  }();
  return sets;
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

void Simulation::handle(const Due& due) {
  at_ = due.at;
  if (due.kind == Due::Kind::arrival) return arrive(due.place);
  if (due.kind == Due::Kind::turn) return come(conversations_.next(due.place), 0);
  if (due.kind == Due::Kind::disk) {
    SimWorker& worker = workers_[due.place];
    worker.read.push_back(worker.disk->finish());
    return worker.wake(at_);
  }
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
    if (config_.clients.turns > 0) plan.conversation = client + 1;
  } else {
    plan = *planned_;
    plan_next();
  }
  come(std::move(plan), client);
}

void Simulation::come(PlannedRequest plan, std::uint32_t client) {
  if (plan.conversation > 0 && !conversations_.begin(plan)) return;
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
  if (++life.tries >= config_.clients.tries_max) return end(life, Outcome::refused, at_);
  // As told, or a little later.
  const double wait = static_cast<double>(come_again->count()) * (1 + 0.1 * client_dice_.unit());
  queue_.add(at_ + Duration(static_cast<std::int64_t>(wait)), Due::Kind::another_try, life.serial, life.place);
}

RequestDraft Simulation::draft_of(const SimRequest& life) const {
  const PlannedRequest& plan = life.plan;
  RequestDraft draft;
  draft.prompt = make_prompt(plan, conversations_.history(plan), workload_.prefixes()[plan.prefix], life.serial);
  draft.max_tokens = plan.max_tokens >= 0 ? plan.max_tokens : plan.output;
  if (plan.timeout_ms > 0) draft.timeout_ms = plan.timeout_ms;
  draft.service_class = plan.service_class;
  draft.tenant = Tenant{plan.tenant + 1, plan.weight, plan.tenant + 2};
  draft.sampling.seed = 1;
  draft.tell_progress = life.serial % 3 == 0;
  draft.adapters = plan.adapter > 0 ? adapter_sets()[static_cast<std::size_t>(plan.adapter - 1)] : nullptr;
  draft.returns = plan.has_tools;
  for (const TokenCount boundary : {plan.prefix_tokens, plan.history}) {
    if (config_.checkpoint_every > 0 && boundary > 0) draft.boundaries.push_back(boundary);
  }
  if (config_.clients.sessions) draft.pin = life.client + 1;
  return draft;
}

void Simulation::submit(SimRequest& life) {
  RequestLimits limits;
  limits.vocabulary = kSimulatedVocabulary;
  limits.context = config_.scheduler.kv.cells_per_slot;
  limits.checkpoint_every = config_.checkpoint_every;
  Result<RequestPtr> request = make_request(lives_.new_id(life), draft_of(life), limits, at_);
  if (!request) return end(life, Outcome::refused, at_);  // too long for the context

  life.request = std::move(*request);
  life.history = 0;
  for (const Token token : life.request->prompt) life.history = extend_history(life.history, token);
  life.known = life.plan.prompt;
  life.let_in = at_;
  life.accepted = true;
  ++accepted_;
  life.worker = 0;
  if (placement_) place(life);
  SimWorker& worker = workers_[life.worker];
  ++worker.accepted;
  worker.watch.waits(life);
  worker.scheduler.add(life.request);
  worker.wake(at_);
  if (static_cast<int>(life.plan.service_class) <= worker.batch.cut_by) worker.cut(at_);
}

// As the dispatcher does it, with what the workers said after their last steps.
void Simulation::place(SimRequest& life) {
  for (WorkerState& state : states_) {
    state.held = state.load.running > 0 ? at_ - state.load.running_since : Duration::zero();
  }
  const auto choice = placement_->place(*life.request, states_);
  CHECK(choice.has_value(), "more sessions than there are pins");
  life.worker = static_cast<std::uint32_t>(choice->worker);
  if (!config_.clients.sessions) return;
  std::int32_t& pinned = pinned_[life.client];
  if (pinned < 0) pinned = static_cast<std::int32_t>(life.worker);
  faults_.expect(pinned == static_cast<std::int32_t>(life.worker), "pinned: a session went to another worker",
                 life.serial);
}

// The client goes away, wherever its request stands.
void Simulation::leave(SimRequest& life) {
  if (!life.accepted) return end(life, Outcome::cancelled, at_);
  SimWorker& worker = workers_[life.worker];
  if (worker.doing == SimWorker::Doing::computes) return leave_at(life);
  life.leaves = true;
  const RequestId id = life.request->id;
  worker.wake(at_);
  worker.scheduler.cancel(id, worker.now);
  take_events(worker);
  faults_.expect(lives_.find(id) == nullptr, "one-terminal: a cancel did not end it");
}

// … as soon as the step is done.
void Simulation::leave_at(SimRequest& life) { workers_[life.worker].leaving.push_back(life.request->id); }

void Simulation::end(SimRequest& life, Outcome outcome, TimePoint now) {
  statistics_.ended(life, outcome, now);
  if (life.accepted) {
    SimWorker& worker = workers_[life.worker];
    --accepted_;
    --worker.accepted;
    worker.watch.ended(life);
    worker.model.ended(life);
    if (placement_) placement_->ended(life.request->id);
  }
  const std::uint32_t client = life.client;
  const std::uint32_t conversation = life.plan.conversation;
  const Distribution& think = life.plan.calls ? config_.clients.tool_ms : config_.clients.think_ms;
  const TimePoint since = std::max(now, at_);
  if (conversation > 0 && conversations_.ended(life)) {
    queue_.add(since + conversations_.waiting(conversation).think, Due::Kind::turn, 0, conversation);
  }
  lives_.give_back(life);
  if (config_.clients.clients > 0) {
    queue_.add(since + milliseconds(think.draw(client_dice_)), Due::Kind::arrival, 0, client);
  }
}

}  // namespace chasqui
