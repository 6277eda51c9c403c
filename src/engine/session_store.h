// The folder in which sessions outlive the process: a file for each, SESSION_ID.session, for the server's user alone.
// It is written whole once (cache/whole_file.h) and grows by each turn (engine/session_turn.h); when turns have said
// the same again and again, so that it is twice as large as what it says, it is written whole again. Bounded by the
// table whose sessions they are, and by their time to live, which ends also while the server is down. Opened at start;
// then any thread, one at a time.
//
// What is there at the start and cannot be used:
//   damaged    also what the system will not give; set aside under another name, SESSION_ID.session.damaged, for
//              inspection
//   foreign    of another vocabulary or another version of the format: left, and removed when its time to live is over
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"
#include "cache/private_folder.h"
#include "engine/session_file.h"
#include "engine/session_writer.h"

namespace chasqui {

class SessionStore final : public SessionWriter {
 public:
  struct Found {
    std::vector<SessionImage> sessions;  // that this model can go on with, in the order in which they were made
    std::size_t damaged = 0;
    std::size_t foreign = 0;
    std::size_t expired = 0;  // removed
    std::size_t cut = 0;  // … of `sessions`: their last write had not ended, and they are what they were before it
  };

  // Errors as those of PrivateFolder::open, and they name the flag.
  static Result<std::unique_ptr<SessionStore>> open(const std::string& path, const VocabularyId& vocabulary);

  // Removes what an end in the middle of a write has left behind. `now`: seconds since 1970.
  Found load(const SessionFileLimits& limits, std::int64_t now);

  std::vector<std::optional<Error>> write(const std::vector<SessionChange>& changes) override;
  // It writes sessions whole by itself.
  std::size_t turns_max() const override { return SIZE_MAX; }
  const std::string& place() const override { return folder_.path(); }
  const Counter& bytes_written() const override { return bytes_written_; }

 private:
  SessionStore(PrivateFolder folder, const VocabularyId& vocabulary)
      : folder_(std::move(folder)), vocabulary_(vocabulary) {}

  void load_one(const std::string& name, const std::string& id, const SessionFileLimits& limits, std::int64_t now,
                Found& found);
  Result<void> write_one(const SessionChange& change);
  Result<void> write_base(const std::string& id, const SessionImage& image);
  Result<void> write_behind(const std::string& id, const SessionTurn& turn);
  void shorten(const std::string& id);

  PrivateFolder folder_;
  VocabularyId vocabulary_;                            // of the sessions that it finds
  std::unordered_map<std::string, TurnPlace> places_;  // by id, of all files that can be used
  bool names_changed_ = false;                         // and the folder has not been synced since
  Counter bytes_written_;
};

}  // namespace chasqui
