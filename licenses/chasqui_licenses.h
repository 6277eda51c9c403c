// The licence texts inside the binary: the files of licenses/texts.inc, see embed.S. For targets that link
// chasqui_licenses. Constant; any thread.
#pragma once

#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): the assembler's symbols
extern "C" {
#define TEXT(name, file) extern const char chasqui_license_##name[], chasqui_license_##name##_end[];
#include <texts.inc>
#undef TEXT
}
// NOLINTEND(readability-identifier-naming)

namespace chasqui::license_text {

#define TEXT(name, file) \
  inline std::string_view name() { return {chasqui_license_##name, chasqui_license_##name##_end}; }
#include <texts.inc>
#undef TEXT

}  // namespace chasqui::license_text
