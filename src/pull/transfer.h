// GET over HTTP and HTTPS with libcurl, one at a time: redirects, proxies of the environment, TLS, and a token that
// only the first host gets. Says how each ended and retries nothing. Keeps connections between calls. One thread, which
// it blocks until the answer has ended or the stop sign is set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "pull/stop_sign.h"

namespace chasqui::pull {

// The status and the headers of an answer, with names in small letters. Of redirects before it, x-linked-etag stays:
// the hub says there which content it sends to look for.
struct AnswerHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;

  std::string_view header(std::string_view name) const;
};

struct TransferCall {
  std::string url;
  std::string token;       // for its host, not for those that it redirects to
  std::uint64_t from = 0;  // bytes that are not asked for
  // What an answer of 200 or 206 brings: its head, and then its body. False: nothing more of it. Without them the body
  // is kept in the answer.
  std::function<bool(const AnswerHead&)> begins{};
  std::function<bool(std::string_view)> piece{};
};

struct TransferAnswer {
  enum class Ending {
    answered,     // to its end, with any status
    left,         // the caller wanted no more
    stopped,      // by the stop sign
    broke,        // the connection, or it brought nothing for too long: trying again makes sense
    unreachable,  // there was no connection
    untrusted,    // the other side's certificate
  };
  Ending ending = Ending::broke;
  std::string why;  // where it was not answered; never has the token
  AnswerHead head;
  std::string body;
  Duration retry_after{};  // that the server asks for
};

class Transfer {
 public:
  struct Settings {
    std::string user_agent;
    std::string certificates;  // file with those that are trusted; empty: as the machine has them
  };
  static Result<std::unique_ptr<Transfer>> open(Settings settings, const StopSign& stop);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  TransferAnswer get(const TransferCall& call);

 private:
  struct Curl;
  Transfer(Settings settings, const StopSign& stop, std::unique_ptr<Curl> curl);

  const Settings settings_;
  const StopSign& stop_;
  const std::unique_ptr<Curl> curl_;
};

}  // namespace chasqui::pull
