#include "pull/link_fetch.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "net/public_address.h"
#include "pull/curl_library.h"

namespace chasqui::pull {
namespace {

constexpr std::size_t kAtOnce = 8;  // of one request
constexpr int kRedirectsMax = 3;
constexpr std::size_t kHeadBytesMax = 64 * 1024;  // older libraries than 8.3 keep all that comes
constexpr int kStopPollMs = 200;

std::string seconds_of(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " seconds";
}

struct Link {
  std::string url;
  std::string host;  // where it is, for people
  Reach reach = Reach::none;
  CURL* easy = nullptr;
  std::string body;
  std::size_t* left = nullptr;  // bytes that all of the request may still have
  std::size_t bytes_max = 0;
  std::size_t head_bytes = 0;
  TimePoint end{};  // for all redirects together
  int redirects = 0;
  bool too_large = false;
  bool kept_in = false;  // its host has an address that it may not have

  bool take(std::string_view bytes) {
    too_large = body.size() + bytes.size() > bytes_max || bytes.size() > *left;
    if (too_large) return false;
    *left -= bytes.size();
    body += bytes;
    return true;
  }
};

std::size_t on_link_body(char* bytes, std::size_t size, std::size_t count, void* link) {
  return static_cast<Link*>(link)->take({bytes, size * count}) ? size * count : 0;
}

std::size_t on_head(char* /*bytes*/, std::size_t size, std::size_t count, void* given) {
  Link& link = *static_cast<Link*>(given);
  link.head_bytes += size * count;
  return link.head_bytes <= kHeadBytesMax ? size * count : 0;
}

curl_socket_t on_connect(void* given, curlsocktype /*purpose*/, curl_sockaddr* address) {
  Link& link = *static_cast<Link*>(given);
  if (link.reach != Reach::all && !net::is_public_address(&address->addr)) {
    link.kept_in = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// All links of one request.
class Fetching {
 public:
  Fetching(const CurlLibrary& library, const LinkTerms& terms)
      : library_(library), terms_(terms), left_(terms.bytes_all), multi_(library.multi_init()) {}
  ~Fetching() {
    for (const auto& link : links_) {
      library_.multi_remove_handle(multi_, link->easy);
      library_.easy_cleanup(link->easy);
    }
    library_.multi_cleanup(multi_);
  }
  Fetching(const Fetching&) = delete;
  Fetching& operator=(const Fetching&) = delete;

  LinkedFiles all(const std::vector<std::string>& urls);

 private:
  std::string begin(Link& link);
  std::string begin_more();
  bool due(TimePoint end, LinkedFiles& out) const;
  std::string judge(Link& link) const;
  std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) const;
  void set_up(Link& link);
  // Of what has ended since: true while there is more to do.
  bool settle(LinkedFiles& out);
  std::string ended(Link& link, CURLcode code);

  const CurlLibrary& library_;
  const LinkTerms& terms_;
  std::size_t left_;
  CURLM* const multi_;
  const RealClock clock_;
  std::vector<std::unique_ptr<Link>> links_;
  std::size_t begun_ = 0;  // of the links
  std::size_t running_ = 0;
};

std::string Fetching::part(CURLU* url, CURLUPart which, unsigned flags) const {
  char* text = nullptr;
  if (library_.url_get(url, which, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string out(text);
  library_.free(text);
  return out;
}

// By the same reading of the address that connects: there is no second opinion of which host it names.
std::string Fetching::judge(Link& link) const {
  CURLU* const url = library_.url();
  const bool read = url != nullptr && library_.url_set(url, CURLUPART_URL, link.url.c_str(), CURLU_DISALLOW_USER) == 0;
  const std::string scheme = read ? part(url, CURLUPART_SCHEME) : std::string();
  link.host = read ? part(url, CURLUPART_HOST) : std::string();
  const std::string port = read ? part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT) : std::string();
  const std::string whole = read ? part(url, CURLUPART_URL) : std::string();
  if (url != nullptr) library_.url_cleanup(url);
  if ((scheme != "http" && scheme != "https") || link.host.empty()) {
    return " must be the address of a file, https://HOST/…, without a user or a password";
  }
  std::uint16_t number = 0;
  std::from_chars(port.data(), port.data() + port.size(), number);
  link.reach = number > 0 ? terms_.hosts.reach(scheme, link.host, number) : Reach::none;
  if (number != (scheme == "https" ? 443 : 80)) link.host += ':' + port;
  link.url = whole;
  if (link.reach != Reach::none) return {};
  return ": the server was started without " + link.host + " in --media-url-hosts, so nothing is fetched from it";
}

void Fetching::set_up(Link& link) {
  const auto set = [&](CURLoption option, auto value) { library_.easy_setopt(link.easy, option, value); };
  set(CURLOPT_URL, link.url.c_str());
  set(CURLOPT_PRIVATE, &link);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, terms_.user_agent.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PROXY, "");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  const Duration left = std::max<Duration>(link.end - clock_.now(), milliseconds(1));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  set(CURLOPT_QUICK_EXIT, 1L);  // a name that is still looked up holds nothing up; of 7.87, no harm before
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(terms_.bytes_each));
  set(CURLOPT_WRITEFUNCTION, &on_link_body);
  set(CURLOPT_WRITEDATA, &link);
  set(CURLOPT_HEADERFUNCTION, &on_head);
  set(CURLOPT_HEADERDATA, &link);
  set(CURLOPT_OPENSOCKETFUNCTION, &on_connect);
  set(CURLOPT_OPENSOCKETDATA, &link);
  // A connection that was opened for one link is not for another, which may not reach as far.
  set(CURLOPT_FRESH_CONNECT, 1L);
  set(CURLOPT_FORBID_REUSE, 1L);
  if (!terms_.certificates.empty()) set(CURLOPT_CAINFO, terms_.certificates.c_str());
}

// What is wrong with it; empty: it is under way.
std::string Fetching::begin(Link& link) {
  if (std::string wrong = judge(link); !wrong.empty()) return wrong;
  library_.easy_reset(link.easy);
  set_up(link);
  library_.multi_add_handle(multi_, link.easy);
  ++running_;
  return {};
}

// What went wrong; empty: the file is there, or comes from where a redirect leads.
std::string Fetching::ended(Link& link, CURLcode code) {
  library_.multi_remove_handle(multi_, link.easy);
  --running_;
  if (link.too_large || code == CURLE_FILESIZE_EXCEEDED) {
    return " must be a file of at most " + std::to_string(terms_.bytes_each) +
           " bytes, and all that a request names of " + std::to_string(terms_.bytes_all);
  }
  const std::string failed = " could not be fetched from " + link.host + ": ";
  if (link.kept_in && code == CURLE_COULDNT_CONNECT) {
    return failed + "its address is not a public one, and --media-url-hosts does not name it as it is";
  }
  if (code == CURLE_OPERATION_TIMEDOUT) return failed + "it took longer than " + seconds_of(terms_.time_each);
  if (link.head_bytes > kHeadBytesMax) return failed + "the head of the answer is too long";
  if (code != CURLE_OK) return failed + library_.easy_strerror(code);
  long status = 0;
  library_.easy_getinfo(link.easy, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return link.body.empty() ? failed + "the file is empty" : std::string();
  char* next = nullptr;
  library_.easy_getinfo(link.easy, CURLINFO_REDIRECT_URL, &next);
  if (next == nullptr || status < 300 || status > 399) return failed + "the answer is " + std::to_string(status);
  if (++link.redirects > kRedirectsMax) return failed + "there are too many redirects";
  link.url = next;
  link.body.clear();
  return begin(link);
}

bool Fetching::settle(LinkedFiles& out) {
  int queued = 0;
  while (const CURLMsg* const message = library_.multi_info_read(multi_, &queued)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* given = nullptr;
    library_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &given);
    Link& link = *reinterpret_cast<Link*>(given);
    const auto which = std::ranges::find(links_, &link, &std::unique_ptr<Link>::get) - links_.begin();
    out.why = ended(link, message->data.result);
    out.failed = static_cast<std::size_t>(which);
    if (!out.why.empty()) return false;
  }
  return running_ > 0;
}

std::string Fetching::begin_more() {
  while (begun_ < links_.size() && running_ < kAtOnce) {
    Link& link = *links_[begun_];
    link.end = clock_.now() + terms_.time_each;
    if (std::string wrong = begin(link); !wrong.empty()) return wrong;
    ++begun_;
  }
  return {};
}

// Whether it is over before all have ended.
bool Fetching::due(TimePoint end, LinkedFiles& out) const {
  out.failed = 0;
  out.stopped = terms_.stop.fd() >= 0 && terms_.stop.is_set();
  if (out.stopped) {
    out.why = " could not be fetched: the server stops";
  } else if (clock_.now() > end) {
    out.why = ": what a request names could not be fetched within " + seconds_of(terms_.time_all);
  }
  return !out.why.empty();
}

LinkedFiles Fetching::all(const std::vector<std::string>& urls) {
  LinkedFiles out;
  for (const std::string& url : urls) {
    Link& link = *links_.emplace_back(std::make_unique<Link>());
    link.url = url;
    link.easy = library_.easy_init();
    link.left = &left_;
    link.bytes_max = terms_.bytes_each;
    CHECK(link.easy != nullptr && multi_ != nullptr, "libcurl has memory for a transfer");
  }
  const TimePoint end = clock_.now() + terms_.time_all;
  curl_waitfd sign{terms_.stop.fd(), CURL_WAIT_POLLIN, 0};
  for (;;) {
    out.why = begin_more();
    out.failed = begun_;
    if (!out.why.empty()) return out;
    int unused = 0;
    library_.multi_perform(multi_, &unused);
    const bool more = settle(out);
    if (!out.why.empty()) return out;
    if (!more && begun_ == links_.size()) break;
    if (due(end, out)) return out;
    if (begun_ < links_.size() && running_ < kAtOnce) continue;
    library_.multi_poll(multi_, &sign, terms_.stop.fd() < 0 ? 0 : 1, kStopPollMs, nullptr);
  }
  for (const auto& link : links_) out.files.push_back(std::move(link->body));
  return out;
}

}  // namespace

Result<void> can_fetch_links() {
  const auto library = curl_library();
  if (!library) return library.error();
  return {};
}

LinkedFiles fetch_links(const std::vector<std::string>& urls, const LinkTerms& terms) {
  const auto library = curl_library();
  if (!library) return {.files = {}, .failed = 0, .why = ": " + library.error().message};
  return Fetching(**library, terms).all(urls);
}

}  // namespace chasqui::pull
