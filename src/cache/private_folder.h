// A folder that belongs to the user of the server alone (0700) and is locked against other processes, as long as this
// lives. Opened at start; then its descriptor is used from any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cache/file_descriptor.h"

namespace chasqui {

class PrivateFolder {
 public:
  // Makes the folder, and those above it, when they are not there. Errors name the path, `what` it is for, and `field`:
  // conflict when another process uses it, forbidden when it belongs to another user or others may look into it,
  // unavailable when the system refuses.
  static Result<PrivateFolder> open(const std::string& path, const std::string& what, const std::string& field);

  // The same folder for another owner in this process, under the same lock.
  PrivateFolder again() const { return PrivateFolder(path_, folder_.again(), lock_.again()); }

  int get() const { return folder_.get(); }
  const std::string& path() const { return path_; }
  // Of all that is in it, in no order.
  std::vector<std::string> names() const;

 private:
  PrivateFolder(std::string path, FileDescriptor folder, FileDescriptor lock)
      : path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::string path_;
  FileDescriptor folder_;
  FileDescriptor lock_;
};

}  // namespace chasqui
