// Steps of a batch as JSON, as the page's view of the batch reads them: in the feed of a server (step_feed.h), and in a
// file that `chasqui replay --steps` writes. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/json_writer.h"
#include "core/types.h"
#include "engine/engine.h"

namespace chasqui {

void write_classes(JsonWriter& json, std::string_view key, const std::array<std::int32_t, kServiceClasses>& values);

// One object: a step of this worker, with this number.
void write_step(JsonWriter& json, std::size_t worker, std::uint64_t number, const StepRecord& step);

// Members of an object: what the steps are to keep, and what there is of slots and cells in all workers together.
void write_promise(JsonWriter& json, std::size_t workers, std::int32_t slots, TokenCount cells,
                   const SchedulerTargets& targets);

}  // namespace chasqui
