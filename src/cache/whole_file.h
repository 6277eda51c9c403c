// A file that is there whole or not at all: written under another name, synced, and renamed. Whatever happens, `name`
// is what it was before or what was to be written; once sync_folder() has said so after that, it is the latter.
// Functions over a folder's descriptor; any thread, one at a time for each name. Such a file may then grow at its end:
// what append_at() has not written to its end is for the reader to tell.
//
// Errors: not_found when there is no such file, invalid_request when it is not one (a link, a pipe, a folder) or became
// shorter while it was read, too_large, also where the disk is full, unavailable when the system refuses: what it says
// is in the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/file_descriptor.h"

namespace chasqui {

// Behind the name, while it is written.
constexpr const char* kPartSuffix = ".part";

using FilePieces = std::vector<std::span<const std::byte>>;
// The pieces, one behind the other.
Result<void> write_whole(int folder, const std::string& name, const FilePieces& pieces);
Result<void> sync_folder(int folder);
// Behind the first `at` bytes of the file; what else was behind them, and had not been written to its end, is cut
// first. The bytes are on disk when it says so. invalid_request when the file is shorter than that.
Result<void> append_at(int folder, const std::string& name, std::uint64_t at, std::span<const std::byte> bytes);

struct OpenFile {
  FileDescriptor file;
  std::uint64_t bytes = 0;
};
// To be read. Never waits, whatever has that name.
Result<OpenFile> open_whole(int folder, const std::string& name);
// REQUIRES: the file is open
Result<void> read_exactly(int file, std::span<std::byte> bytes);
Result<std::vector<std::byte>> read_whole(int folder, const std::string& name, std::uint64_t most);

}  // namespace chasqui
