#include "net/http_response.h"

#include <array>
#include <charconv>
#include <ctime>

namespace chasqui::net {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    case 529: return "Overloaded";
    default: return "Unknown";
  }
}

void append_status_line(std::string& out, int status) {
  std::array<char, 12> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), status).ptr;
  out += "HTTP/1.1 ";
  out.append(digits.data(), end);
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n";
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_headers(std::string& out, const HttpHeaders& headers) {
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto [name, value] = headers[i];
    append_header(out, name, value);
  }
}

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string http_date(std::int64_t unix_seconds) {
  const auto whole = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  // Not strftime's %a and %b, which follow the locale.
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::string out(kDays[static_cast<std::size_t>(parts.tm_wday)]);
  std::array<char, 40> text;
  std::size_t n = std::strftime(text.data(), text.size(), ", %d ", &parts);
  out.append(text.data(), n);
  out += kMonths[static_cast<std::size_t>(parts.tm_mon)];
  n = std::strftime(text.data(), text.size(), " %Y %H:%M:%S GMT", &parts);
  out.append(text.data(), n);
  return out;
}

}  // namespace chasqui::net
