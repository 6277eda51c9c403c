// Makes JSON of arguments that a model may have written in another notation: a line break inside a string, which is
// allowed there, is escaped. Sees one text in pieces, in their order. One thread at a time.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace chasqui {

class ControlEscaper {
 public:
  std::string escaped(std::string_view json) {
    std::string out;
    out.reserve(json.size());
    for (const char c : json) {
      const bool control = static_cast<unsigned char>(c) < 0x20;
      if (control && inside_) {
        // Behind a backslash it can be nothing but the second half of an escape.
        std::array<char, 8> code{};
        std::snprintf(code.data(), code.size(), after_backslash_ ? "u%04x" : "\\u%04x", c);
        out += code.data();
      } else {
        out += c;
      }
      if (c == '"' && !after_backslash_) inside_ = !inside_;
      after_backslash_ = c == '\\' && inside_ && !after_backslash_;
    }
    return out;
  }

 private:
  bool inside_ = false;  // a string
  bool after_backslash_ = false;
};

}  // namespace chasqui
