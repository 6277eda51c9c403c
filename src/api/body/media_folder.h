// Pictures and sounds that clients name instead of sending them: file:// addresses, of files in the one folder that the
// operator lets them name (--media-path). Reads a file: offload pool. Pure otherwise.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

// The bytes of the file that is named behind "file://": a path within the folder, or the whole path of such a file, by
// its letters. Links that lead out of the folder are not followed. Errors: invalid_request on `path` where there is no
// such file, whatever else is there, or it is over the limit of one that is sent.
Result<std::string> read_from_media_folder(const std::string& folder, std::string_view name, const std::string& path);

}  // namespace chasqui
