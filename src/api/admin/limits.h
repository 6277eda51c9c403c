// The limits as /props shows them: all of base/limits.h with what is in force here. Loop thread.
#pragma once

#include "base/json_writer.h"

namespace chasqui {

struct Node;
struct ServedModel;

// An object: times in seconds, and by class where they are of classes.
void write_limits(JsonWriter& json, const Node& node, const ServedModel& served);

}  // namespace chasqui
