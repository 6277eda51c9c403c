// The folder in which sessions outlive the process: a file for each, SESSION_ID.session, replaced whole at each change
// (cache/whole_file.h), for the server's user alone. Bounded by the table whose sessions they are, and by their time to
// live, which ends also while the server is down. Opened at start; then any thread, one at a time.
//
// What is there at the start and cannot be used:
//   damaged    also what the system will not give; set aside under another name, SESSION_ID.session.damaged, for
//              inspection
//   foreign    of another model or another version of the format: left, and removed when its time to live is over
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/private_folder.h"
#include "engine/session_file.h"

namespace chasqui {

// The newest state of one session.
struct SessionChange {
  std::string id;
  std::optional<SessionImage> image;  // none: it has gone
};

class SessionStore {
 public:
  struct Found {
    std::vector<SessionImage> sessions;  // that this model can go on with, in the order in which they were made
    std::size_t damaged = 0;
    std::size_t foreign = 0;
    std::size_t expired = 0;  // removed
  };

  // Errors as those of PrivateFolder::open, and they name the flag.
  static Result<std::unique_ptr<SessionStore>> open(const std::string& path, const WeightsId& weights);

  // Removes what an end in the middle of a write has left behind. `now`: seconds since 1970.
  Found load(const SessionFileLimits& limits, std::int64_t now);
  // What became of each, in their order. Those without an error are what is found after any end of the process.
  std::vector<std::optional<Error>> write(const std::vector<SessionChange>& changes);

  const std::string& path() const { return folder_.path(); }

 private:
  SessionStore(PrivateFolder folder, const WeightsId& weights) : folder_(std::move(folder)), weights_(weights) {}

  void load_one(const std::string& name, const std::string& id, const SessionFileLimits& limits, std::int64_t now,
                Found& found);

  PrivateFolder folder_;
  WeightsId weights_;
};

}  // namespace chasqui
