#include "model/same_file.h"

#include <cerrno>
#include <cstring>

#include "model/weights_identity.h"

namespace chasqui {

Result<FileStamp> SameFile::stamp_of(const std::string& path) {
  const auto stamp = FileStamp::of(path);
  if (stamp) return *stamp;
  return invalid_field("model", "Cannot read the model " + path + ": " + std::strerror(errno) + ".");
}

Result<SameFile> SameFile::look(const std::string& path) {
  const auto stamp = stamp_of(path);
  if (!stamp) return stamp.error();
  const auto sum = identify_weights(path);
  if (!sum) return sum.error();
  return SameFile(path, *stamp, *sum);
}

Result<void> SameFile::check() {
  const auto stamp = stamp_of(path_);
  if (!stamp) return stamp.error();
  if (*stamp == stamp_) return {};
  const auto sum = identify_weights(path_);
  if (!sum) return sum.error();
  if (*sum != sum_) {
    return Error{ErrorCode::unavailable,
                 "The model " + path_ + " is another one than this server has loaded; POST /models/load serves it.",
                 "model"};
  }
  stamp_ = *stamp;
  return {};
}

}  // namespace chasqui
