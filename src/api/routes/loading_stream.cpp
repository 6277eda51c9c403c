#include "api/routes/loading_stream.h"

#include "net/sse.h"

namespace chasqui {

net::Awaitable<bool> LoadingStream::comment(std::string text) {
  if (!begun_) {
    begun_ = true;
    net::HttpHeaders headers = net::sse_headers();
    const bool open = co_await below_.start_stream(200, std::move(headers));
    if (!open) co_return false;
  }
  std::string out;
  net::append_sse_comment(out, text);
  const bool open = co_await below_.write_chunk(out);
  co_return open;
}

void LoadingStream::add_response_header(std::string_view name, std::string_view value) {
  if (!begun_) below_.add_response_header(name, value);
}

net::Awaitable<bool> LoadingStream::respond(net::HttpResponse response) {
  if (!begun_) {
    const bool sent = co_await below_.respond(std::move(response));
    co_return sent;
  }
  answered_ = true;
  std::string out;
  net::append_sse_event(out, response.body, dialect_.error_event);
  const bool sent = co_await below_.finish_stream(out);
  co_return sent;
}

net::Awaitable<bool> LoadingStream::start_stream(int status, net::HttpHeaders headers) {
  if (begun_) {
    answered_ = true;
    co_return !below_.client_gone();
  }
  const bool open = co_await below_.start_stream(status, std::move(headers));
  co_return open;
}

net::Awaitable<bool> LoadingStream::write_chunk(std::string_view data) {
  const bool open = co_await below_.write_chunk(data);
  co_return open;
}

net::Awaitable<bool> LoadingStream::finish_stream(std::string_view data) {
  const bool sent = co_await below_.finish_stream(data);
  co_return sent;
}

}  // namespace chasqui
