#include "api/observe/step_json.h"

namespace chasqui {
namespace {

double milliseconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds / 1000) / 1000.0; }

}  // namespace

void write_classes(JsonWriter& json, std::string_view key, const std::array<std::int32_t, kServiceClasses>& values) {
  json.begin_array(key);
  for (const std::int32_t value : values) json.number(value);
  json.end_array();
}

void write_step(JsonWriter& json, std::size_t worker, std::uint64_t number, const StepRecord& step) {
  json.begin_object();
  json.field("n", number);
  json.field("worker", worker);
  json.field("kind", step.prefill != 0 ? "prefill" : "decode");
  json.field("t", milliseconds_of(step.started));
  json.field("ms", milliseconds_of(step.took));
  json.field("compute_ms", milliseconds_of(step.compute));
  json.field("predicted_ms", milliseconds_of(step.predicted));
  write_classes(json, "decode", step.decode_rows);
  write_classes(json, "prompt", step.prompt_rows);
  json.field("sequences", step.sequences);
  json.field("padding", step.padding);
  json.field("cut", step.cut != 0);
  json.field("running", step.running);
  write_classes(json, "waiting", step.waiting);
  write_classes(json, "streams", step.streams);
  json.field("cells", step.cells);
  json.field("restored", step.restored);
  json.field("saved", step.saved);
  json.end_object();
}

void write_promise(JsonWriter& json, std::size_t workers, std::int32_t slots, TokenCount cells,
                   const SchedulerTargets& targets) {
  json.field("workers", workers);
  json.field("slots", slots);
  json.field("cells", cells);
  json.field("prefill_step_ms", to_milliseconds(targets.prefill_step));
  json.begin_object("targets");
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    json.begin_object(name(static_cast<ServiceClass>(c)));
    json.field("first_token_ms", to_milliseconds(targets.of[c].first_token));
    json.field("next_token_ms", to_milliseconds(targets.of[c].next_token));
    json.end_object();
  }
  json.end_object();
}

}  // namespace chasqui
