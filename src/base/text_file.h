// A small file that an operator writes, or a pipe that gives its text. Blocks; at a start, or on a thread of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace chasqui {

// The file's bytes, and no more than most + 1 of them: a text longer than `most` bytes is a file with more. Nothing if
// it cannot be read.
std::optional<std::string> read_text_file(const std::string& path, std::size_t most);

}  // namespace chasqui
