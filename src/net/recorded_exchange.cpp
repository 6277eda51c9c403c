#include "net/recorded_exchange.h"

#include <utility>

namespace chasqui::net {

std::size_t RecordedAnswer::bytes() const {
  std::size_t bytes = sizeof *this + body.size();
  for (std::size_t i = 0; i < headers.size(); ++i) bytes += headers[i].first.size() + headers[i].second.size();
  return bytes;
}

std::optional<RecordedAnswer> RecordedExchange::take_answer() {
  if (!whole_ || failed_ || too_long_ || status_ != 200) return std::nullopt;
  for (std::size_t i = 0; i < extra_.size(); ++i) answer_.headers.add(extra_[i].first, extra_[i].second);
  return std::move(answer_);
}

void RecordedExchange::add(std::string_view data) {
  if (too_long_) return;
  too_long_ = answer_.body.size() + data.size() > bytes_max_;
  if (too_long_) {
    std::string().swap(answer_.body);
  } else {
    answer_.body += data;
  }
}

void RecordedExchange::add_response_header(std::string_view name, std::string_view value) {
  extra_.add(name, value);
  ForwardingExchange::add_response_header(name, value);
}

Awaitable<bool> RecordedExchange::respond(HttpResponse response) {
  status_ = response.status;
  answer_.headers = response.headers;
  add(response.body);
  whole_ = true;
  return ForwardingExchange::respond(std::move(response));
}

Awaitable<bool> RecordedExchange::start_stream(int status, HttpHeaders headers) {
  status_ = status;
  answer_.headers = headers;
  answer_.streamed = true;
  return ForwardingExchange::start_stream(status, std::move(headers));
}

Awaitable<bool> RecordedExchange::write_chunk(std::string_view data) {
  add(data);
  return ForwardingExchange::write_chunk(data);
}

bool RecordedExchange::write_now(std::string_view data) {
  add(data);
  return ForwardingExchange::write_now(data);
}

Awaitable<bool> RecordedExchange::finish_stream(std::string_view data) {
  add(data);
  whole_ = true;
  return ForwardingExchange::finish_stream(data);
}

void RecordedExchange::stream_failed() {
  failed_ = true;
  ForwardingExchange::stream_failed();
}

}  // namespace chasqui::net
