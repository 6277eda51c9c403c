// How long the reading of a body may take, told from its bytes before anything is parsed. Loop thread: it scans bodies
// of less than 10 kB, and does not look into longer ones. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/clock.h"

namespace chasqui {

// What a body's reading lets others of the same tenant pass for: a hundred times what its bytes and its elements take,
// so that a person's question does not stand behind a batch of long ones that came just before it;
// net::OffloadPool::kLong at most. That much also where the body has a grammar, a schema or tools: a hundred bytes of
// them can keep a thread for its whole budget of computing time.
Duration reading_can_wait(std::string_view body);
// The same of so many bytes that hold no rules, wherever they come from.
Duration reading_can_wait(std::size_t bytes);

// What a long answer's writing lets others pass for: kLong where it may take ten milliseconds.
Duration writing_can_wait(std::size_t bytes);

}  // namespace chasqui
