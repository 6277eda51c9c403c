// What the hub says about a repository: the commit that a revision is, and which files it has. Reads answers of its
// API; what could lead out of a folder, or has no checksum, is left out or refused. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui::pull {

struct HubFile {
  std::string path;  // in the repository; safe below a folder
  std::uint64_t bytes = 0;
  std::string oid;     // what the cache calls its content
  bool large = false;  // the oid is the SHA-256 of the file; else git's SHA-1 of it

  bool is_gguf() const { return path.ends_with(".gguf"); }
};

// Of `GET /api/models/REPO/revision/REVISION`: forty digits.
Result<std::string> read_commit(std::string_view body);
// Of `GET /api/models/REPO/tree/COMMIT?recursive=true`, a page of it.
Result<std::vector<HubFile>> read_files(std::string_view body);
// The address of the next page, of the header Link; empty: this is the last one.
std::string read_next_page(std::string_view link);

// Whether it leads to something below a folder, whichever: no part of it is empty, `.` or `..`.
bool is_safe_path(std::string_view path);
// Digits of a checksum or a commit, in small letters.
bool is_hex(std::string_view text, std::size_t digits);
// With %XX for what a part of an address cannot have, and for `/` unless it is kept.
std::string in_address(std::string_view text, bool keeps_slashes);

}  // namespace chasqui::pull
