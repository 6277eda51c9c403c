#include "pull/transfer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "pull/curl_library.h"

namespace chasqui::pull {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kSilentSeconds = 60;
constexpr long kBufferBytes = 256 * 1024;
constexpr int kPollMs = 1000;  // so often at least the time that brought nothing is looked at
constexpr std::size_t kBodyMax = 32 << 20;
constexpr std::size_t kHeadersMax = 256;
constexpr std::string_view kLinked = "x-linked-etag";

// What libcurl calls back with.
struct Exchange {
  const TransferCall& call;
  TransferAnswer& answer;
  bool begun = false;
  bool left = false;
  bool too_long = false;

  bool brings() const { return answer.head.status == 200 || answer.head.status == 206; }

  bool begin() {
    if (begun || !brings() || !call.begins) return true;
    begun = true;
    left = !call.begins(answer.head);
    return !left;
  }

  bool take(std::string_view bytes) {
    if (!begin()) return false;
    if (brings() && call.piece) {
      left = !call.piece(bytes);
      return !left;
    }
    too_long = answer.body.size() + bytes.size() > kBodyMax;
    if (!too_long) answer.body += bytes;
    return !too_long;
  }

  void take_head(std::string_view line) {
    AnswerHead& head = answer.head;
    if (line.starts_with("HTTP/")) {  // also of what a redirect leads to
      std::erase_if(head.headers, [](const auto& header) { return header.first != kLinked; });
      head.status = 0;
      const std::size_t space = line.find(' ');
      for (std::size_t at = space + 1; space != line.npos && at < line.size() && at < space + 4; ++at) {
        if (line[at] >= '0' && line[at] <= '9') head.status = head.status * 10 + (line[at] - '0');
      }
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos || head.headers.size() >= kHeadersMax) return;
    std::string name = in_small_letters(line.substr(0, colon));
    const std::size_t from = line.find_first_not_of(" \t", colon + 1);
    const std::size_t last = line.find_last_not_of(" \t\r\n");
    std::string value(from == line.npos || last < from ? "" : line.substr(from, last - from + 1));
    if (name == kLinked) {
      head.headers.emplace(std::move(name), std::move(value));  // the first one is the hub's
    } else {
      head.headers.insert_or_assign(std::move(name), std::move(value));
    }
  }
};

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* exchange) {
  return static_cast<Exchange*>(exchange)->take({bytes, size * count}) ? size * count : 0;
}

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* exchange) {
  static_cast<Exchange*>(exchange)->take_head({bytes, size * count});
  return size * count;
}

TransferAnswer::Ending ending_of(CURLcode code) {
  using enum TransferAnswer::Ending;
  switch (code) {
    case CURLE_OK: return answered;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS: return unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER: return untrusted;
    default: return broke;
  }
}

}  // namespace

std::string_view AnswerHead::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

struct Transfer::Curl {
  explicit Curl(const CurlLibrary& loaded) : library(loaded), easy(loaded.easy_init()), multi(loaded.multi_init()) {}
  ~Curl() {
    library.easy_cleanup(easy);
    library.multi_cleanup(multi);
  }

  void set_up(const TransferCall& call, const Settings& settings, Exchange& exchange);
  // The result; nothing: the stop sign was set before.
  std::optional<CURLcode> perform(const StopSign& stop);

  const CurlLibrary& library;
  CURL* const easy;
  CURLM* const multi;
  std::array<char, CURL_ERROR_SIZE> why{};
  std::string range;
};

void Transfer::Curl::set_up(const TransferCall& call, const Settings& settings, Exchange& exchange) {
  const auto set = [this](CURLoption option, auto value) { library.easy_setopt(easy, option, value); };
  library.easy_reset(easy);
  why[0] = '\0';
  set(CURLOPT_ERRORBUFFER, why.data());
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // a name that is still looked up holds no signal up; of 7.87, no harm before
  set(CURLOPT_USERAGENT, settings.user_agent.c_str());
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // one stream has nothing to share
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, call.url.starts_with("https:") ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, &exchange);
  if (!settings.certificates.empty()) set(CURLOPT_CAINFO, settings.certificates.c_str());
  if (!call.token.empty()) {  // libcurl gives it to no other host, protocol or port
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    set(CURLOPT_XOAUTH2_BEARER, call.token.c_str());
  }
  range = std::to_string(call.from) + '-';
  if (call.from > 0) set(CURLOPT_RANGE, range.c_str());
}

std::optional<CURLcode> Transfer::Curl::perform(const StopSign& stop) {
  curl_waitfd sign{stop.fd(), CURL_WAIT_POLLIN, 0};
  std::optional<CURLcode> result;
  library.multi_add_handle(multi, easy);
  for (int running = 1; running > 0;) {
    if (library.multi_perform(multi, &running) != CURLM_OK) {
      result = CURLE_FAILED_INIT;
      break;
    }
    if (running > 0) library.multi_poll(multi, &sign, stop.fd() < 0 ? 0 : 1, kPollMs, nullptr);
    if (stop.is_set()) break;
  }
  int left = 0;
  while (const CURLMsg* const message = library.multi_info_read(multi, &left)) {
    if (message->msg == CURLMSG_DONE) result = message->data.result;
  }
  library.multi_remove_handle(multi, easy);
  return result;
}

Result<std::unique_ptr<Transfer>> Transfer::open(Settings settings, const StopSign& stop) {
  const auto library = curl_library();
  if (!library) return library.error();
  auto curl = std::make_unique<Curl>(**library);
  CHECK(curl->easy != nullptr && curl->multi != nullptr, "libcurl has memory for a transfer");
  return std::unique_ptr<Transfer>(new Transfer(std::move(settings), stop, std::move(curl)));
}

Transfer::Transfer(Settings settings, const StopSign& stop, std::unique_ptr<Curl> curl)
    : settings_(std::move(settings)), stop_(stop), curl_(std::move(curl)) {}

Transfer::~Transfer() = default;

TransferAnswer Transfer::get(const TransferCall& call) {
  using enum TransferAnswer::Ending;
  TransferAnswer answer;
  Exchange exchange{call, answer};
  curl_->set_up(call, settings_, exchange);
  const std::optional<CURLcode> code = curl_->perform(stop_);
  if (!code) {
    answer.ending = stopped;
    answer.why = "stopped";
    return answer;
  }
  answer.ending = ending_of(*code);
  if (*code == CURLE_OK && !exchange.begin()) exchange.left = true;  // of an answer without a body
  if (exchange.left) answer.ending = left;
  if (answer.ending != answered)
    answer.why = curl_->why[0] != '\0' ? curl_->why.data() : curl_->library.easy_strerror(*code);
  if (exchange.too_long) answer.why = "the answer is too long";
  curl_off_t seconds = 0;
  if (curl_->library.easy_getinfo(curl_->easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0) {
    answer.retry_after = std::chrono::seconds(std::min<curl_off_t>(seconds, 3600));
  }
  return answer;
}

}  // namespace chasqui::pull
