// HTTP for stores, over libcurl: a set of requests, up to eight at a time, on connections that are kept between calls.
// TLS is verified, proxies are those of the environment, redirects are not followed, and credentials go to the one host
// that all requests of an instance are for. What is overloaded or breaks is tried again, twice at most.
//
// Blocks. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace chasqui::store {

struct HttpCall {
  std::string method;
  std::string url;
  std::vector<std::string> headers{};                // "Depth: 1"
  std::optional<std::span<const std::byte>> body{};  // alive until the answer is there
  std::size_t most = 64 * 1024;                      // bytes of the answer's body where its status is 2xx
};

struct HttpAnswer {
  int status = 0;  // 0: no answer that makes sense, for the reason in `why`
  std::string why;
  bool is_too_long = false;     // its body, which then is empty
  std::vector<std::byte> body;  // of a refusal: its first bytes
  Duration retry_after{};       // that the server asks for

  std::string_view text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }
};

// What the stores need of it, so that tests can answer in its place.
class HttpExchanges {
 public:
  virtual ~HttpExchanges() = default;
  // The answers, in the order of the calls.
  virtual std::vector<HttpAnswer> run(std::span<const HttpCall> calls) = 0;
};

class HttpTransfers final : public HttpExchanges {
 public:
  struct Settings {
    // So long a request may be without an answer: its end, or 64 KiB more of it or of its body, on which it begins
    // anew. Connecting takes 5 s at most.
    Duration patience = seconds(10);
    std::string user;
    std::string password;
    // "aws:amz:REGION:s3" signs with them, and the body's hash; empty: basic authentication, where there is a user.
    std::string signing;
    std::string session_token;  // that goes with the signature; empty: none
  };
  // not_supported: there is no libcurl, or one that signs wrongly.
  static Result<std::unique_ptr<HttpTransfers>> open(Settings settings);
  ~HttpTransfers() override;
  HttpTransfers(const HttpTransfers&) = delete;
  HttpTransfers& operator=(const HttpTransfers&) = delete;

  std::vector<HttpAnswer> run(std::span<const HttpCall> calls) override;

 private:
  struct CurlSet;
  HttpTransfers(Settings settings, std::unique_ptr<CurlSet> curl);

  const Settings settings_;
  const std::unique_ptr<CurlSet> curl_;
};

}  // namespace chasqui::store
