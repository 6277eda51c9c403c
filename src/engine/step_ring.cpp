#include "engine/step_ring.h"

#include <algorithm>

namespace chasqui {

StepRecord describe_step(const Batch& batch, const BatchResult& result) {
  StepRecord out;
  out.predicted = std::chrono::nanoseconds(batch.predicted).count();
  out.compute = std::chrono::nanoseconds(result.compute).count();
  // Of a batch without rows the kind says nothing.
  out.prefill = !batch.rows.empty() && batch.kind == Batch::Kind::prefill ? 1 : 0;
  out.cut = result.status == DecodeStatus::ok ? 0 : 1;
  out.padding = batch.padding_rows();
  out.sequences = static_cast<std::int32_t>(batch.parts.size());
  for (const BatchPart& part : batch.parts) {
    const auto c = static_cast<std::size_t>(part.request->service_class);
    const auto prompt = static_cast<TokenCount>(part.request->prompt.size());
    const TokenCount first = batch.rows[static_cast<std::size_t>(part.first_row)].position;
    // A stream whose context was shifted is back where its prompt was.
    const bool may_stream = batch.kind == Batch::Kind::decode && part.request->shift_at > 0;
    const std::int32_t of_prompt = may_stream ? 0 : std::clamp(prompt - first, 0, part.rows);
    out.prompt_rows[c] += of_prompt;
    out.decode_rows[c] += part.rows - of_prompt;
  }
  for (std::size_t i = 0; i < batch.restores.size(); ++i) {
    const bool failed = std::ranges::find(result.not_restored, i) != result.not_restored.end();
    if (!failed) out.restored += batch.restores[i].end() - batch.restores[i].from;
  }
  for (const SlotReuse& reuse : batch.reuses) out.restored += reuse.keep;
  for (const SlotSave& save : batch.saves) out.saved += save.tokens - save.from;
  return out;
}

void add_occupancy(const Occupancy& occupancy, StepRecord& step) {
  step.running = occupancy.running;
  step.waiting = occupancy.waiting;
  step.streams = occupancy.streams;
  step.cells = occupancy.cells;
}

// Each word is released and acquired: a reader that sees a word of the new record also sees that its writing had begun.
void StepRing::write(const StepRecord& record) {
  const std::uint64_t number = written_.load(std::memory_order_relaxed) + 1;
  Place& place = places_[number % kStepsKept];
  const auto words = std::bit_cast<Words>(record);
  place.version.store(2 * number - 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < words.size(); ++i) place.words[i].store(words[i], std::memory_order_release);
  place.version.store(2 * number, std::memory_order_release);
  written_.store(number, std::memory_order_release);
}

bool StepRing::read(std::uint64_t number, StepRecord& record) const {
  const Place& place = places_[number % kStepsKept];
  if (number == 0 || place.version.load(std::memory_order_acquire) != 2 * number) return false;
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = place.words[i].load(std::memory_order_acquire);
  if (place.version.load(std::memory_order_relaxed) != 2 * number) return false;
  record = std::bit_cast<StepRecord>(words);
  return true;
}

}  // namespace chasqui
