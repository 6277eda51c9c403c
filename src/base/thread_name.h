// Names of threads, as seen with top -H, perf or a debugger.
#pragma once

#include <string>

namespace chasqui {

// Of the calling thread; systems cut it after 15 characters. Does nothing where threads have no names.
void name_this_thread(const std::string& name);

}  // namespace chasqui
