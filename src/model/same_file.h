// Whether the file of a model is still the one that was loaded first. A server that sleeps reads it again when it
// wakes: other weights under the same name would meet KV, a vocabulary and a template that belong to the old ones. Any
// thread, one at a time.
//
// Files that have the size, the inode and the time of change that they had are the same. Otherwise the checksum decides
// (model/weights_identity.h), so that a copy of the same model, or a touched file, is no other model.
#pragma once

#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file_stamp.h"

namespace chasqui {

class SameFile {
 public:
  static Result<SameFile> look(const std::string& path);

  // An error that names the file: it has changed, or cannot be read.
  Result<void> check();

 private:
  SameFile(std::string path, const FileStamp& stamp, const Checksum& sum)
      : path_(std::move(path)), stamp_(stamp), sum_(sum) {}
  static Result<FileStamp> stamp_of(const std::string& path);

  std::string path_;
  FileStamp stamp_;  // of the first of several split files; the others are covered by the checksum alone
  Checksum sum_;
};

}  // namespace chasqui
