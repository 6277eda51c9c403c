#include "record/recorded_head.h"

#include <algorithm>

namespace chasqui {
namespace {

struct Bound {
  const char* name;
  std::int64_t value;
  std::int64_t low;
  std::int64_t high;
};

}  // namespace

std::optional<std::string> unusable(const RecordedHead& head) {
  const SchedulerConfig& config = head.config;
  const KvLedger::Layout& kv = config.kv;
  const DiskLimits disk = config.reuse.disk.value_or(DiskLimits{});
  constexpr std::int64_t kMost = 1 << 30;
  const Bound bounds[] = {
      {"slots", kv.slots, 1, 1 << 16},
      {"cells_per_slot", kv.cells_per_slot, 1, kMost},
      {"cells", kv.cells, kv.cells_per_slot, kMost},
      {"rows_max", config.rows_max, 1, kMost},
      {"kv_block", config.reuse.kv_block, 0, kMost},
      {"slots_ready", config.reuse.slots_ready, 0, kv.slots},
      {"draft_tokens_max", config.speculation.draft_tokens_max, 0, Drafts::kMost},
      {"draft_tokens_min", config.speculation.draft_tokens_min, 0, Drafts::kMost},
      {"ngram", config.speculation.ngram, 1, 1 << 10},
      {"workers", disk.workers, std::int64_t{disk.worker} + 1, 1 << 15},
  };
  for (const auto& [name, value, low, high] : bounds) {
    if (value < low || value > high) return std::string(name) + " is " + std::to_string(value);
  }
  if (!slot_policies().contains(head.policy)) return "there is no policy '" + head.policy + "'";
  return std::nullopt;
}

}  // namespace chasqui
