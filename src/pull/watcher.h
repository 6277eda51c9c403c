// What is told about a pull while it goes on: for a bar, or for lines. Its owner outlives the pull; called by the
// thread of that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace chasqui::pull {

class Watcher {
 public:
  virtual ~Watcher() = default;
  // A file is fetched of which `have` bytes are there from an earlier time.
  virtual void begins(const std::string& file, std::uint64_t bytes, std::uint64_t have) = 0;
  // So many bytes of it are there now; fewer than before where it had to begin again.
  virtual void moves(std::uint64_t have) = 0;
  virtual void ends(const std::string& file, std::uint64_t bytes) = 0;
  // It was there already.
  virtual void knows(const std::string& file, std::uint64_t bytes) = 0;
  // Another process fetches it; this one waits.
  virtual void waits(const std::string& file) = 0;
  // Something broke off and is tried again after the pause, or a file begins again.
  virtual void notes(std::string_view what) = 0;
};

}  // namespace chasqui::pull
