// What a recording of one worker begins with: whose it is, and all that its scheduler was made with. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/byte_stream.h"
#include "sched/scheduler.h"

namespace chasqui {

struct RecordedHead {
  std::string program;  // with its version: another one may plan otherwise
  std::string model;
  std::uint32_t worker = 0;
  std::vector<std::pair<std::string, std::string>> about;  // for people: the model's shape, limits of requests
  std::string policy = "fair";
  SchedulerConfig config;  // its policy is `policy`
};

// What no scheduler can be made with; nothing: all is well. Names the figure.
std::optional<std::string> unusable(const RecordedHead& head);

template <class Io, class Config>
void pass_config(Io& io, Config& config) {
  auto& [kv, rows_max, dense_slots, cuts_steps, cuts_joined, exchanges, encodes, reuse, speculation, targets, policy,
         tap] = config;
  io(kv.slots, kv.cells, kv.cells_per_slot, kv.unified, rows_max, dense_slots, cuts_steps, cuts_joined, exchanges,
     encodes);
  auto& cache = reuse.cache;
  io(cache.bytes, cache.entries, cache.cut_anywhere, cache.hand_over, reuse.shared_by_tenants);
  bool has_disk = reuse.disk.has_value();
  io(has_disk);
  auto disk = reuse.disk.value_or(DiskLimits{});
  io(disk.bytes, disk.queue_bytes, disk.worker, disk.workers);
  if constexpr (!std::is_const_v<Config>) {
    if (has_disk) reuse.disk = disk;
  }
  io(reuse.kv_block, reuse.waits, reuse.kv_token_bytes, reuse.keeps_slots, reuse.slots_ready, reuse.notes_slots,
     reuse.first_slot);
  io(speculation.draft_tokens_max, speculation.draft_tokens_min, speculation.alone, speculation.outputs_max,
     speculation.draft_model, speculation.heads, speculation.ngram, speculation.always);
  for (auto& target : targets.of) io(target.first_token, target.next_token);
  io(targets.prefill_step);
  auto& rules = targets.rules;
  io(rules.classes, rules.tenants, rules.short_work, rules.overtaking, rules.class_preempts, rules.slices,
     rules.shortest_rows, rules.reading_turns, rules.targets, rules.efficient_chunks, rules.stretch, rules.step_cuts,
     rules.dense_slots, rules.hole_rows, rules.pad_decode, rules.join_prompts, rules.slowdown, rules.prefix_waits);
}

template <class Io, class Head>
void pass_head(Io& io, Head& head) {
  io(head.program, head.model, head.worker, head.about, head.policy);
  pass_config(io, head.config);
}

}  // namespace chasqui
