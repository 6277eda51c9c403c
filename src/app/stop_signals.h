// Ctrl-C and SIGTERM as something that can be asked and waited for: while one lives they end no process but make a
// descriptor readable. Owned by a command that runs alone; made before it starts threads, since they inherit this.
#pragma once

#include <csignal>

#include "cache/file_descriptor.h"

namespace chasqui {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }
  // The number of the first that came; 0: none. It is told once.
  int take();

 private:
  sigset_t before_{};
  FileDescriptor fd_;
};

}  // namespace chasqui
