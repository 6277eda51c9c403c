// Memory that a large body has taken and given back to the allocator, which keeps most of it: a body of 30 MB would
// cost hundreds of MiB of resident memory for as long as the process lives. Who reads such a body notes it;
// app/memory_return has the allocator give it to the system. Any thread.
#pragma once

namespace chasqui {

void note_large_body();
// Whether one was noted since the last call.
bool take_large_body();

// Takes milliseconds, more where much is to be given back: not for the loop, nor for a worker.
void give_back_freed_memory();

}  // namespace chasqui
