// What a thread or the process has computed, without what it had to wait for a processor: for limits that are about
// work, so that no work exceeds them because the machine is busy, and for what a request has cost (base/cpu_account.h).
// Any thread. In clock.cpp, the only place that reads clocks.
#pragma once

#include "base/clock.h"

namespace chasqui {

Duration thread_time();
// Of the thread that the system counts as `number`; zero where it does not tell it, or the thread has ended.
Duration thread_time(int number);
// What all threads of the process together have computed, those that have ended included.
Duration process_time();

}  // namespace chasqui
