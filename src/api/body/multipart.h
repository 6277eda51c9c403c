// Forms with files, multipart/form-data (RFC 7578), as uploads are sent. Reads a body that is there whole, and keeps
// views into it: nothing of a file is copied. Pure; offload pool.
//
// Errors are invalid_request, and say what of the form is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct FormPart {
  std::string name;
  std::optional<std::string> filename;  // as it was sent: a text, never a path
  std::string_view content;             // of the body
};

// What separates the parts, from the header Content-Type.
Result<std::string> form_boundary(std::string_view content_type);
Result<std::vector<FormPart>> read_form(std::string_view body, const std::string& boundary);

}  // namespace chasqui
