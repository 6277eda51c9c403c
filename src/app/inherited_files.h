// For a process that a server has started of its own binary: what it has open of the server. Before other threads.
#pragma once

namespace chasqui {

// All but standard input, output and error.
void close_inherited_files();

}  // namespace chasqui
