// One file of a repository, from the hub into its folder: goes on where an earlier time ended, asks again where a
// connection breaks, and gives the content its name only when size and checksum are right. What is there of it stays
// whatever ends the process. Owned by the pull; its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cache/file_descriptor.h"
#include "net/digest.h"
#include "pull/hub.h"
#include "pull/hub_files.h"
#include "pull/repo_folder.h"
#include "pull/retries.h"
#include "pull/stop_sign.h"
#include "pull/watcher.h"

namespace chasqui::pull {

// What all files of a pull share. It outlives them.
struct DownloadPlace {
  Hub& hub;
  const RepoFolder& folder;
  const std::string& repo;
  const std::string& commit;
  const StopSign& stop;
  Watcher& watcher;
  int retries = 0;
};

class FileDownload {
 public:
  FileDownload(const DownloadPlace& place, const HubFile& file);

  // The content is there. The value: bytes that came over the network.
  Result<std::uint64_t> run();

 private:
  Result<FileDescriptor> wait_for_lock();
  Result<void> open();
  Result<void> read_partial();
  Result<void> fetch_until_right();
  Result<void> fetch_rest();
  std::optional<Error> fetch_once();
  bool begins(const AnswerHead& head);
  bool take(std::string_view bytes);
  bool fail(ErrorCode code, const std::string& why);
  Result<void> begin_again();
  Result<void> keep();
  Error cannot(const std::string& path) const;

  const DownloadPlace& place_;
  const HubFile& file_;
  FileDescriptor partial_;
  net::Digest digest_;
  Retries retries_;
  std::uint64_t have_ = 0;        // bytes that are written and summed up
  std::uint64_t farthest_ = 0;    // … at any time
  std::uint64_t came_ = 0;        // over the network
  bool pieced_ = false;           // of more than one answer, or of an earlier time
  std::optional<Error> failure_;  // why the rest of an answer is not wanted
};

}  // namespace chasqui::pull
