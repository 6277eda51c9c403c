#include "base/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace chasqui {
namespace {

void append_escape(std::string& out, unsigned char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u00";
  out += kHex[c >> 4];
  out += kHex[c & 15];
}

template <class Number>
void append_chars(std::string& out, Number value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  out.append(text, end);
}

template <class Real>
void append_real(std::string& out, Real value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else if (value == std::trunc(value) && std::fabs(value) < Real(1e15)) {
    append_chars(out, static_cast<std::int64_t>(value));  // 1.0 is written 1, never 1e+00
  } else {
    append_chars(out, value);
  }
}

// U+0080 … U+009F, which some terminals obey.
bool is_c1_control(std::string_view text) {
  return text.size() == 2 && text[0] == '\xC2' && static_cast<unsigned char>(text[1]) < 0xA0;
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  std::size_t plain = 0;  // start of the run that can be copied as it is
  std::size_t i = 0;
  while (i < text.size()) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      const std::size_t n = utf8_character(text.substr(i));
      if (is_c1_control(text.substr(i, n))) {
        out.append(text, plain, i - plain);
        append_escape(out, static_cast<unsigned char>(text[i + 1]));
        plain = i += n;
        continue;
      }
      if (n > 0) {
        i += n;
        continue;
      }
    }
    out.append(text, plain, i - plain);
    if (c >= 0x80) {
      out += "\xEF\xBF\xBD";
    } else {
      append_escape(out, c);
    }
    plain = ++i;
  }
  out.append(text, plain, i - plain);
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

void append_json_number(std::string& out, std::int64_t value) { append_chars(out, value); }
void append_json_number(std::string& out, std::uint64_t value) { append_chars(out, value); }

void append_json_number(std::string& out, double value) { append_real(out, value); }
void append_json_number(std::string& out, float value) { append_real(out, value); }

}  // namespace chasqui
