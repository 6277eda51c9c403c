// A whole response, and the head of any response. Plain values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_headers.h"

namespace chasqui::net {

// Has constructors on purpose: a class that g++ 12 may see as a temporary beside a co_await must not be an aggregate.
struct HttpResponse {
  HttpResponse() = default;
  explicit HttpResponse(int status_code) : status(status_code) {}
  HttpResponse(int status_code, std::string_view content_type, std::string text) : status(status_code) {
    headers.add("Content-Type", content_type);
    body = std::move(text);
  }

  int status = 200;
  // Content-Length, Connection and Date are added when the response is sent and do not belong here.
  HttpHeaders headers;
  std::string body;
};

std::string_view reason_phrase(int status);

// "HTTP/1.1 200 OK\r\n".
void append_status_line(std::string& out, int status);
void append_header(std::string& out, std::string_view name, std::string_view value);
void append_headers(std::string& out, const HttpHeaders& headers);
// 204, 304 and 1xx have no body and no Content-Length.
bool status_has_body(int status);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::int64_t unix_seconds);

}  // namespace chasqui::net
