#include "app/inherited_files.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace chasqui {

void close_inherited_files() {
  std::vector<int> open;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/dev/fd", error), end; !error && at != end; at.increment(error)) {
    const int fd = std::atoi(at->path().filename().c_str());
    if (fd > STDERR_FILENO) open.push_back(fd);
  }
  for (const int fd : open) ::close(fd);  // the one of the folder, too, which is closed already
}

}  // namespace chasqui
