#include "app/recording.h"

#include "app/settings.h"

namespace chasqui {

RecordedHead recorded_head(const ModelParts& parts) {
  const ModelShape shape = shape_of_all(parts.contexts);
  const RequestLimits limits = request_limits(parts.config, parts.model.info, shape);
  RecordedHead head;
  head.program = std::string("chasqui ") + CHASQUI_VERSION;
  head.model = model_config(parts.config, parts.model).name;
  for (const auto& [name, policy] : slot_policies()) {
    if (policy == parts.config.policy) head.policy = name;
  }
  const auto say = [&head](const char* name, std::int64_t value) {
    head.about.emplace_back(name, std::to_string(value));
  };
  head.about.emplace_back("model", parts.model.info.description);
  say("vocabulary", shape.vocabulary);
  say("slots", shape.slots);
  say("cells", shape.cells);
  say("cells_per_slot", shape.cells_per_slot);
  say("rows_max", shape.rows_max);
  say("outputs_max", shape.outputs_max);
  say("unified", shape.unified);
  say("dense_slots", shape.dense_slots);
  say("trims_anywhere", shape.trims_anywhere);
  say("rollback", shape.rollback);
  say("cuts_snapshots", shape.cuts_snapshots);
  say("shifts", shape.shifts);
  say("kv_block", shape.kv_block);
  say("max_tokens_default", limits.max_tokens_default);
  say("timeout_default_ms", limits.timeout_default / milliseconds(1));
  say("queue_timeout_ms", limits.queue_timeout / milliseconds(1));
  say("checkpoint_every", limits.checkpoint_every);
  say("checkpoints_max", static_cast<std::int64_t>(limits.checkpoints_max));
  say("moves_text", limits.moves_text);
  return head;
}

}  // namespace chasqui
