// A file of /v1/files: what is said of it, on disk as ID.meta beside its bytes in ID.bytes, and to clients. Owned by
// the BatchDesk; loop thread. The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_writer.h"

namespace chasqui {

struct StoredFile {
  std::string id;            // "file-…", made by the server
  std::uint64_t owner = 0;   // the tenant's lasting name
  std::uint64_t serial = 0;  // in the order in which files were made, of all
  std::string filename;
  std::string purpose;  // "batch", "batch_output"
  std::uint64_t bytes = 0;
  std::int64_t created = 0;
  std::int64_t expires = 0;  // 0: never

  std::size_t users = 0;  // batches that have not ended and read it; not on disk
};

using StoredFilePtr = std::shared_ptr<StoredFile>;

inline std::string meta_name(const std::string& id) { return id + ".meta"; }
inline std::string bytes_name(const std::string& id) { return id + ".bytes"; }

void write_file(JsonWriter& json, const StoredFile& file);
std::string file_meta(const StoredFile& file);
Result<StoredFile> read_file_meta(std::string_view text);

}  // namespace chasqui
