#include "engine/runner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/thread_time.h"
#include "core/put_off.h"
#include "model/heads.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

// Of computing, for one token, by libllama's samplers and grammars, which nothing else bounds. A request that needs
// longer ends, as at its max_tokens. Time that the thread waited for a processor does not count.
constexpr Duration kConstraintMax = milliseconds(250);

}  // namespace

void Runner::run(Batch& batch, BatchResult& result) {
  result.clear();
  prepare(batch, result);
  if (drafter_) drafter_->follow(batch);
  if (!result.not_restored.empty()) {
    result.status = DecodeStatus::aborted;  // rows would go on from what is not there
  } else if (!batch.rows.empty()) {
    for (const auto& [request, slot, from, to] : batch.shifts) model_.shift(slot, from, to);
    if (!batch.drafting.empty()) drafter_ ? drafter_->draft(batch, result, clock_) : draft(batch, result);
    compute(batch, result);
    if (batch.learn && batch.unit == nullptr && result.status == DecodeStatus::ok) learn(batch, result);
    trim_padding(batch);
  }
  if (result.status == DecodeStatus::ok) {
    draw_together(batch);
    scratch_.mask_work = mask_work_;
    for (const BatchPart& part : batch.parts) read(batch, part, result);
  }
  result.finished = clock_.now();
}

void Runner::compute(const Batch& batch, BatchResult& result) {
  TimePoint started = clock_.now();
  if (batch.unit != nullptr) {
    const auto encoded = model_.encode(*batch.unit, batch.parts.front().request->tenant.id);
    const TimePoint now = clock_.now();
    result.encoding = now - std::exchange(started, now);
    if (!encoded) {
      log_error("a picture or a sound cannot be encoded", {{"reason", encoded.error().message}});
      result.status = DecodeStatus::failed;
      return;
    }
    result.encoded = *encoded;
  }
  result.status = model_.decode(batch);
  result.compute = clock_.now() - started;
}

// Where that is worth waking the threads for.
void Runner::draw_together(const Batch& batch) {
  constexpr std::size_t kWorthIt = std::size_t{1} << 18;  // logits; a row of 150,000 takes 10 to 100 µs
  std::vector<Draws::Draw>& draws = draws_.draws;
  draws.resize(std::max(draws.size(), batch.parts.size()));
  std::size_t logits = 0;
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const BatchPart& part = batch.parts[i];
    draws[i].sampler = nullptr;
    if (!part.samples || part.request->parts != nullptr) continue;
    draws[i].sampler = &voice(*part.request).sampler;
    logits += static_cast<std::size_t>(model_.shape().vocabulary);
  }
  if (logits < kWorthIt || model_.row_threads() < 2) {
    for (std::size_t i = 0; i < batch.parts.size(); ++i) draws[i].sampler = nullptr;
    return;
  }
  while (draws_.scratch.size() < model_.row_threads()) draws_.scratch.push_back(std::make_unique<SamplerScratch>());
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    if (draws[i].sampler != nullptr) draws[i].logits = model_.logits(batch.parts[i].last_row());
  }
  model_.for_each_row(batch.parts.size(), draws_);
}

void Runner::Draws::run(std::size_t row, std::size_t thread) {
  Draw& draw = draws[row];
  if (draw.sampler != nullptr) draw.token = draw.sampler->sample(draw.logits, *scratch[thread], &draw.chances);
}

void Runner::prepare(const Batch& batch, BatchResult& result) {
  if (!batch.saves.empty()) {
    const TimePoint started = clock_.now();
    for (const SlotSave& save : batch.saves) {
      result.snapshots.push_back(model_.copy_out(save.slot, save.from, save.tokens));
    }
    result.saving = clock_.now() - started;
  }
  for (const SlotId slot : batch.trims) model_.trim(slot, 0);
  for (const SlotReuse& reuse : batch.reuses) model_.reuse(reuse.slot, reuse.keep);
  if (!batch.restores.empty()) {
    const TimePoint started = clock_.now();
    for (std::size_t i = 0; i < batch.restores.size(); ++i) {
      const SlotRestore& restore = batch.restores[i];
      if (!bring(restore)) result.not_restored.push_back(i);
    }
    result.restoring = clock_.now() - started;
  }
  for (const SlotMove& move : batch.moves) {
    move.exchange ? model_.exchange(move.from, move.to) : model_.move(move.from, move.to);
  }
}

bool Runner::bring(const SlotRestore& restore) {
  const auto& [request, slot, snapshot, keep, from, to, source] = restore;
  if (restore.whole()) return model_.restore(slot, *snapshot, keep);
  if (snapshot) return model_.restore_piece(slot, *snapshot, keep, from, restore.end());
  return model_.copy_piece(source, slot, keep, from, restore.end());
}

// With the heads of the model, whatever Batch::drafting wants to be read.
void Runner::draft(Batch& batch, BatchResult& result) {
  Heads* const heads = model_.heads();
  CHECK(heads != nullptr, "this worker has neither a draft model nor draft heads");
  const TimePoint started = clock_.now();
  result.drafted = heads->draft(batch);
  result.drafting = clock_.now() - started;
  if (!result.drafted) log_warning("the draft heads failed; their draft tokens will be rejected");
}

void Runner::learn(const Batch& batch, BatchResult& result) {
  Heads* const heads = model_.heads();
  CHECK(heads != nullptr, "this worker has no draft heads");
  const TimePoint started = clock_.now();
  heads->learn(batch);
  result.learning = clock_.now() - started;
}

void Runner::trim_padding(const Batch& batch) {
  for (auto row = batch.rows.end() - batch.padding; row != batch.rows.end(); ++row) model_.trim(row->slot, 0);
}

// Samples until a draft token was rejected. That each token is drawn from what the model said of its own row, whatever
// had been drafted, is why drafting changes no answer. REQUIRES: the batch was computed
void Runner::read(const Batch& batch, const BatchPart& part, BatchResult& result) {
  if (part.tells) tell_prompt(batch, part, result);
  const auto last = batch.rows.begin() + part.last_row();
  Draws::Draw& first = draws_.draws[static_cast<std::size_t>(&part - batch.parts.data())];
  scratch_.can_wait = can_wait(part);
  std::int32_t accepted = 0;
  while (part.samples) {
    Sample& out = result.samples.emplace_back();
    const std::optional<Token> instead = synthetic_token(batch, part, accepted);
    Draws::Draw* const drawn = accepted == 0 && first.sampler != nullptr ? &first : nullptr;
    if (!sample(*part.request, part.last_row() + accepted, instead, drawn, out, result)) {
      result.samples.pop_back();
      return put_off(batch, part, accepted, result);
    }
    const bool was_right = synthetic_acceptance_.empty()
                               ? accepted < part.draft_tokens && last[accepted + 1].token == out.token
                               : instead.has_value();
    out.computed = was_right && !out.ends();
    if (out.computed) ++accepted;
    if (out.ends() || !say_forced(batch, part, accepted, result)) break;
  }
  if (accepted < part.draft_tokens || part.padding > 0) model_.trim(part.slot, last->position + 1 + accepted);
}

// For a mask: with a model that forgets a row and computes it again as it was.
bool Runner::can_wait(const BatchPart& part) const {
  return part.request->parts != nullptr && !part.tells && model_.shape().trims_anywhere && model_.heads() == nullptr &&
         synthetic_acceptance_.empty();
}

// The row that was to be sampled is taken back. Its token is the last one of the sequence, or of those that were
// sampled in this step.
void Runner::put_off(const Batch& batch, const BatchPart& part, std::int32_t accepted, BatchResult& result) {
  const TokenCount end = batch.rows[static_cast<std::size_t>(part.last_row())].position + 1;
  if (accepted > 0) {
    result.samples.back().computed = false;
    return model_.trim(part.slot, end + accepted - 1);
  }
  result.put_off.push_back(part.request->id);
  model_.trim(part.slot, end - rows_put_off(part));
}

// What nothing else can come in place of, behind the last token of `result`. True: rows of all that was said are there.
// A deterministic answer is computed row by row, whatever is certain.
bool Runner::say_forced(const Batch& batch, const BatchPart& part, std::int32_t& accepted, BatchResult& result) {
  const Request& request = *part.request;
  bool computed = result.samples.back().computed;
  if (request.parts == nullptr || request.deterministic || !synthetic_acceptance_.empty()) return computed;
  SequenceOutput& speaker = voice(request);
  const std::span<const Token> forced =
      speaker.due.empty() ? speaker.sampler.forced(result.samples.back().token) : std::span(speaker.due).subspan(1);
  const auto room = static_cast<std::size_t>(std::max(request.max_tokens - speaker.said, 0));
  forced_.assign(forced.begin(), forced.begin() + static_cast<std::ptrdiff_t>(std::min(room, forced.size())));
  speaker.due.clear();
  for (const Token token : forced_) {
    Sample& out = result.samples.emplace_back();
    out.request = request.id;
    out.token = token;
    out.forced = true;
    say(request, speaker, out);
    if (out.ends()) return false;
    const auto next = batch.rows.begin() + part.last_row() + 1 + accepted;
    out.computed = computed = computed && accepted < part.draft_tokens && next->token == token;
    if (computed) ++accepted;
  }
  return computed;
}

// Each row says how likely the token behind it was; behind the last one of the prompt there is none yet.
void Runner::tell_prompt(const Batch& batch, const BatchPart& part, BatchResult& result) {
  const std::vector<Token>& prompt = part.request->prompt;
  PromptChances& out = result.prompts.emplace_back();
  out.from = batch.rows[static_cast<std::size_t>(part.first_row)].position + 1;
  for (std::int32_t row = part.first_row; row <= part.last_row(); ++row) {
    const auto next = static_cast<std::size_t>(batch.rows[static_cast<std::size_t>(row)].position + 1);
    if (next >= prompt.size()) return;
    const auto wanted = static_cast<std::size_t>(std::max(0, part.request->sampling.chances));
    tell_likelihood(model_.logits(row), prompt[next], wanted, scratch_, out.chances.emplace_back());
  }
}

// The draft token, where synthetic acceptance counts it as accepted.
std::optional<Token> Runner::synthetic_token(const Batch& batch, const BatchPart& part, std::int32_t place) {
  if (synthetic_acceptance_.empty() || place == part.draft_tokens) return std::nullopt;
  const Token draft_token = batch.rows[static_cast<std::size_t>(part.last_row() + 1 + place)].token;
  const double rate =
      synthetic_acceptance_[std::min(static_cast<std::size_t>(place), synthetic_acceptance_.size() - 1)];
  const double drawn = static_cast<double>(dice_()) / std::minstd_rand::max();
  return drawn < rate && !tokenizer_.is_end_of_generation(draft_token) ? std::optional(draft_token) : std::nullopt;
}

// False: the token is put off.
bool Runner::sample(const Request& request, std::int32_t row, std::optional<Token> instead, Draws::Draw* drawn,
                    Sample& out, BatchResult& result) {
  SequenceOutput& speaker = voice(request);
  out.request = request.id;
  // The ways through an ambiguous grammar may double with every token. Everybody else waits for it.
  const bool timed = request.parts != nullptr;
  const Duration started = timed ? thread_time() : Duration::zero();
  std::optional<WorkBudget> budget;
  if (timed) budget.emplace(kConstraintMax);
  if (!speaker.due.empty()) {
    out.token = speaker.due.front();
  } else if (drawn != nullptr) {
    out.token = drawn->token;
    std::swap(out.chances, drawn->chances);
  } else {
    out.token = speaker.sampler.sample(model_.logits(row), scratch_, &out.chances);
  }
  out.token = instead.value_or(out.token);
  const bool is_drawn = out.token != Sampler::kPutOff;
  if (is_drawn) say(request, speaker, out);
  if (!timed) return is_drawn;
  const Duration took = thread_time() - started;
  out.time_is_up = out.time_is_up || (took >= kConstraintMax && !speaker.sampler.counts_work());
  result.constraining += took;
  ++result.constrained_tokens;
  return is_drawn;
}

void Runner::say(const Request& request, SequenceOutput& speaker, Sample& out) {
  speaker.sampler.accept(out.token);
  write(request, speaker, out);
}

// Into text, unless it ends the answer.
void Runner::write(const Request& request, SequenceOutput& speaker, Sample& out) {
  ++speaker.said;
  const auto& stops = request.stop_tokens;
  out.end_of_generation =
      tokenizer_.is_end_of_generation(out.token) || std::find(stops.begin(), stops.end(), out.token) != stops.end();
  const auto& shows = request.shown_tokens;
  const bool shown = std::find(shows.begin(), shows.end(), out.token) != shows.end();
  if (out.end_of_generation && !request.special_pieces && !shown) return;
  const std::string* const stop = shown ? speaker.text.push_bytes(tokenizer_.special_piece(out.token), out.text)
                                        : speaker.text.push(out.token, out.text);
  if (request.predict_limit != Duration::max()) {
    const TimePoint now = clock_.now();
    if (speaker.first_token == kNever) speaker.first_token = now;
    speaker.new_line = speaker.new_line || out.text.find('\n') != std::string::npos;
    const bool over = speaker.new_line && now - speaker.first_token >= request.predict_limit;
    out.time_is_up = out.time_is_up || over;
  }
  out.outdented = !speaker.indent.pass(out.text);
  if (stop != nullptr && !out.outdented) {
    out.stopped = true;
    out.stop_string = *stop;
  }
}

std::string Runner::close(RequestId id) {
  std::string held;
  const auto found = voices_.find(id);
  if (found == voices_.end()) return held;
  found->second.text.finish(held);
  found->second.indent.pass(held);
  voices_.erase(found);
  return held;
}

Runner::SequenceOutput& Runner::voice(const Request& request) {
  const auto found = voices_.find(request.id);
  if (found != voices_.end()) return found->second;
  SequenceOutput& made = open(request);
  if (!request.begun.empty()) follow(request, made, nullptr);
  return made;
}

std::optional<Sample> Runner::retell(const Request& request, std::vector<Event>& events) {
  return follow(request, open(request), &events);
}

// Up to where the other node stopped, its draws included. Where that was amid what a grammar had forced, the rest is
// due, as it was found there: from here on it might be other tokens.
std::optional<Sample> Runner::follow(const Request& request, SequenceOutput& speaker, std::vector<Event>* events) {
  const bool forces = request.parts != nullptr && !request.deterministic;
  std::size_t drawn = 0;
  std::size_t known = 0;  // tokens that were drawn or forced, from the first one on
  for (std::size_t i = 0; i < request.begun.size(); ++i) {
    Sample said;
    said.token = request.begun[i];
    speaker.sampler.follow(said.token);
    write(request, speaker, said);
    said.time_is_up = false;  // its time begins with the first token here
    if (events != nullptr) {
      Event& event = events->emplace_back();
      event.request = request.id;
      event.text = said.text;
      event.token = said.token;
      event.tokens = 1;
      event.service_class = request.service_class;
      event.usage.prompt = static_cast<TokenCount>(request.prompt.size());
      event.usage.completion = event.usage.begun = static_cast<TokenCount>(i + 1);
    }
    if (said.ends()) return said;
    if (i < known && speaker.due[speaker.due.size() - (known - i)] == said.token) continue;
    ++drawn;
    known = i + 1;
    speaker.due.clear();
    if (!forces) continue;
    const std::span<const Token> forced = speaker.sampler.forced(said.token);
    speaker.due.assign(forced.begin(), forced.end());
    known += forced.size();
  }
  const std::size_t left = known - request.begun.size();
  speaker.due.erase(speaker.due.begin(), speaker.due.end() - static_cast<std::ptrdiff_t>(left));
  speaker.sampler.skip_draws(drawn);
  speaker.first_token = kNever;
  return std::nullopt;
}

Runner::SequenceOutput& Runner::open(const Request& request) {
  SequenceOutput fresh(
      Sampler(request.sampling, tokenizer_.vocabulary(), tokenizer_.end_of_generation_tokens(), request.parts.get()),
      TextAssembler(tokenizer_, request.stop, request.special_pieces), IndentGuard(request.indent_min));
  fresh.sampler.accept(request.prompt);
  fresh.text.begin_after(request.prompt);
  return voices_.emplace(request.id, std::move(fresh)).first->second;
}

}  // namespace chasqui
