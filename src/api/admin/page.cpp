#include "api/admin/page.h"

#include <algorithm>
#include <span>
#include <vector>

#include <chasqui_page.h>

#include "base/checksum.h"
#include "base/error.h"
#include "net/gzip.h"

namespace chasqui {
namespace {

struct File {
  std::string_view type;
  std::span<const std::byte> plain;
  std::span<const std::byte> gzip;
  std::string etag;
};

std::string etag_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const std::byte byte : checksum(bytes)) {
    out += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    out += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return out + '"';
}

// In the order of kPagePaths.
std::vector<File> make_files() {
  const auto file = [](std::string_view type, const page::Bytes& bytes) {
    return File{type, bytes.plain(), bytes.gzip(), etag_of(bytes.plain())};
  };
  constexpr std::string_view kScript = "text/javascript; charset=utf-8";
  const File icon = file("image/svg+xml", page::icon());
  return {file("text/html; charset=utf-8", page::html()),
          file(kScript, page::script()),
          file("text/css; charset=utf-8", page::style()),
          icon,
          icon,
          file(kScript, page::pdf_reader())};
}

const File& file_at(std::string_view path) {
  static const std::vector<File> files = make_files();
  const auto at = std::ranges::find(kPagePaths, path);
  CHECK(at != kPagePaths.end());
  return files[static_cast<std::size_t>(at - kPagePaths.begin())];
}

// The client has this one, in whatever coding it got it.
bool has(std::string_view if_none_match, const std::string& etag) {
  return if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos;
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// It may run its own script, ask its own server and what the operator has named, and nothing else. So what a model says
// can neither run nor call home, not even through an image.
std::string page_policy(const std::vector<std::string>& mcp_origins) {
  std::string connect = "'self'";
  for (const std::string& origin : mcp_origins) connect += ' ' + origin;
  return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src " + connect +
         "; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

net::Awaitable<void> handle_page(net::HttpExchange& exchange, std::string_view policy) {
  const net::HttpRequest& request = exchange.request();
  const File& file = file_at(request.path);
  const bool fresh = has(request.headers.get("If-None-Match").value_or(""), file.etag);
  net::HttpResponse response(fresh ? 304 : 200);
  response.headers.add("ETag", file.etag);
  response.headers.add("Cache-Control", "no-cache");  // keep it, and ask whether it is still the same
  response.headers.add("Vary", "Accept-Encoding");
  response.headers.add("Content-Security-Policy", policy);
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Referrer-Policy", "no-referrer");
  if (!fresh) {
    const bool gzip = net::allows_gzip(request.headers.get("Accept-Encoding").value_or(""));
    response.headers.add("Content-Type", file.type);
    if (gzip) response.headers.add("Content-Encoding", "gzip");
    response.body = text(gzip ? file.gzip : file.plain);
  }
  co_await exchange.respond(std::move(response));
}

}  // namespace chasqui
