// Saves what slots have left to files, and brings it back: between the engine, which has the copies, and
// cache/slot_files, which has the folder. A tenant gets at what was its own only: copies are found by tenant, files are
// named and marked by tenant. Owned by the part that has its thread: one at a time, never a worker's, since each call
// waits for a step and for the disk.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cache/slot_files.h"
#include "engine/engine.h"

namespace chasqui {

// What was done.
struct SlotTransfer {
  std::size_t tokens = 0;
  std::uint64_t bytes = 0;  // of the file
  Duration took{};
};

class SlotStore {
 public:
  // The others outlive it.
  SlotStore(std::shared_ptr<SlotFiles> files, Engine& engine, const Clock& clock)
      : files_(std::move(files)), engine_(engine), clock_(clock) {}

  static Result<void> check_name(std::string_view filename) { return check_slot_file_name(filename); }

  // What the tenant's latest sequence in this slot has left. invalid_request for a name that check_name() refuses, and
  // when nothing is left; too_large when there is no room for the file. `alone` as in SlotFileOwner.
  Result<SlotTransfer> save(SlotId slot, const Tenant& tenant, const std::string& filename, bool alone);
  // invalid_request for whatever is wrong with the file, which then costs nothing but having been looked at.
  Result<SlotTransfer> restore(SlotId slot, const Tenant& tenant, const std::string& filename);

 private:
  const std::shared_ptr<SlotFiles> files_;
  Engine& engine_;
  const Clock& clock_;
};

}  // namespace chasqui
