#include "net/http_request.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace chasqui::net {
namespace {

constexpr std::array<std::pair<HttpMethod, std::string_view>, 7> kMethods = {{
    {HttpMethod::get, "GET"},
    {HttpMethod::head, "HEAD"},
    {HttpMethod::post, "POST"},
    {HttpMethod::put, "PUT"},
    {HttpMethod::patch, "PATCH"},
    {HttpMethod::del, "DELETE"},
    {HttpMethod::options, "OPTIONS"},
}};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// In queries `+` is a space, and a bad escape is taken as it stands, as browsers do.
std::string decode_query(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return percent_decode(spaced).value_or(std::string(text));
}

}  // namespace

std::string_view name(HttpMethod method) {
  for (const auto& [known, text] : kMethods) {
    if (known == method) return text;
  }
  return "GET";
}

std::optional<HttpMethod> parse_http_method(std::string_view text) {
  for (const auto& [known, spelling] : kMethods) {
    if (spelling == text) return known;
  }
  return std::nullopt;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool is_authority(std::string_view text) {
  const auto all = [](std::string_view part, auto&& allowed) { return std::ranges::all_of(part, allowed); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_name = [](char c) { return is_ascii_word_or("-._~", c); };
  const auto is_address = [](char c) { return hex_digit(c) >= 0 || c == ':' || c == '.'; };
  std::size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos || end == 1 || !all(text.substr(1, end - 1), is_address)) return false;
    ++end;
  } else {
    const auto name = percent_decode(text.substr(0, end));
    if (!name || !all(*name, is_name)) return false;
  }
  const std::string_view port = text.substr(std::min(end, text.size()));
  return port.empty() || (port.starts_with(':') && all(port.substr(1), is_digit));
}

std::string_view HttpRequest::raw_path() const { return std::string_view(target).substr(0, target.find('?')); }

std::string_view HttpRequest::raw_query() const {
  const std::size_t mark = target.find('?');
  return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
}

std::optional<std::string> HttpRequest::query(std::string_view name) const {
  std::string_view rest = raw_query();
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (decode_query(part.substr(0, equals)) != name) continue;
    return equals == std::string_view::npos ? std::string() : decode_query(part.substr(equals + 1));
  }
  return std::nullopt;
}

bool HttpRequest::announces_body() const {
  const auto length = header("Content-Length");
  return headers.has("Transfer-Encoding") || (length && *length != "0");
}

}  // namespace chasqui::net
