// Answers to a store's requests, from a function of a test instead of a server. One thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/http_transfers.h"

namespace chasqui::store {

inline std::vector<std::byte> fake_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline HttpAnswer fake_answer(int status, std::string_view body = {}) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = fake_bytes(body);
  return answer;
}

class FakeExchanges final : public HttpExchanges {
 public:
  using Answering = std::function<HttpAnswer(const HttpCall&)>;
  // `seen`: each request as "METHOD url".
  FakeExchanges(Answering answering, std::vector<std::string>& seen) : answering_(std::move(answering)), seen_(seen) {}

  std::vector<HttpAnswer> run(std::span<const HttpCall> calls) override {
    std::vector<HttpAnswer> out;
    for (const HttpCall& call : calls) {
      seen_.push_back(call.method + ' ' + call.url);
      out.push_back(answering_(call));
    }
    return out;
  }

 private:
  const Answering answering_;
  std::vector<std::string>& seen_;
};

}  // namespace chasqui::store
