#include "api/routes/loading_stream.h"

#include "net/sse.h"

namespace chasqui {

net::Awaitable<bool> LoadingStream::comment(std::string text) {
  if (!begun_) {
    begun_ = true;
    net::HttpHeaders headers = net::sse_headers();
    const bool open = co_await below().start_stream(200, std::move(headers));
    if (!open) co_return false;
  }
  std::string out;
  net::append_sse_comment(out, text);
  const bool open = co_await below().write_chunk(out);
  co_return open;
}

void LoadingStream::add_response_header(std::string_view name, std::string_view value) {
  if (!begun_) ForwardingExchange::add_response_header(name, value);
}

net::Awaitable<bool> LoadingStream::respond(net::HttpResponse response) {
  if (!begun_) {
    const bool sent = co_await below().respond(std::move(response));
    co_return sent;
  }
  answered_ = true;
  std::string out;
  net::append_sse_event(out, response.body, dialect_.error_event);
  const bool sent = co_await below().finish_stream(out);
  co_return sent;
}

net::Awaitable<bool> LoadingStream::start_stream(int status, net::HttpHeaders headers) {
  if (begun_) {
    answered_ = true;
    co_return !below().client_gone();
  }
  const bool open = co_await below().start_stream(status, std::move(headers));
  co_return open;
}

}  // namespace chasqui
