#include "store/http_transfers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "net/sha256.h"
#include "pull/curl_library.h"

namespace chasqui::store {
namespace {

constexpr std::size_t kAtOnce = 8;
constexpr long kConnectMs = 5000;
constexpr int kPollMs = 50;  // so often at least the patience is looked at
constexpr std::size_t kProgress = 64 * 1024;
constexpr std::size_t kRefusalMax = 16 * 1024;
constexpr long kTransferBuffer = 256 * 1024;
constexpr unsigned kOldestThatSigns = 0x075800;  // 7.88 signs all headers, and the body's hash for S3
constexpr int kTriesMax = 3;
constexpr Duration kPause = milliseconds(100);  // doubled for the next

struct ListFree {
  const pull::CurlLibrary* library = nullptr;
  void operator()(curl_slist* list) const { library->slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListFree>;

// Of one request that is under way.
struct Flight {
  const pull::CurlLibrary* library = nullptr;
  CURL* easy = nullptr;
  const HttpCall* call = nullptr;
  HttpAnswer* answer = nullptr;
  HeaderList headers;
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_off_t moved = 0;  // of both bodies, when `since` was set
  TimePoint since{};
  bool refused_bytes = false;

  bool ok() const { return answer->status >= 200 && answer->status < 300; }
  // Room for what is announced, at once: a vector that grows takes twice as much in between.
  bool has_room() {
    curl_off_t announced = 0;
    library->easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
    if (announced <= 0 || !answer->body.empty()) return true;
    if (std::cmp_greater(announced, call->most)) return false;
    answer->body.reserve(static_cast<std::size_t>(announced));
    return true;
  }
};

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* of) {
  Flight& flight = *static_cast<Flight*>(of);
  HttpAnswer& answer = *flight.answer;
  const std::size_t got = size * count;
  const std::size_t room = (flight.ok() ? flight.call->most : kRefusalMax) - answer.body.size();
  const auto* const from = reinterpret_cast<const std::byte*>(bytes);
  if (flight.ok() && (got > room || !flight.has_room())) {
    flight.refused_bytes = true;
    return 0;
  }
  answer.body.insert(answer.body.end(), from, from + std::min(got, room));
  return got;
}

std::size_t take_head(char* bytes, std::size_t size, std::size_t count, void* of) {
  Flight& flight = *static_cast<Flight*>(of);
  const std::string_view line(bytes, size * count);
  if (const std::size_t space = line.find(' '); line.starts_with("HTTP/") && space != line.npos) {
    flight.answer->status = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), flight.answer->status);
  }
  return size * count;
}

std::string hash_of(const HttpCall& call) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string_view body;
  if (call.body) body = {reinterpret_cast<const char*>(call.body->data()), call.body->size()};
  std::string out;
  for (const std::uint8_t byte : net::sha256({body})) out += {kHex[byte >> 4], kHex[byte & 15]};
  return out;
}

bool is_worth_another_try(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING: return true;
    default: return false;
  }
}

}  // namespace

struct HttpTransfers::CurlSet {
  explicit CurlSet(const pull::CurlLibrary& loaded) : library(loaded), multi(loaded.multi_init()) {
    for (Flight& flight : flights) {
      flight.library = &library;
      flight.easy = library.easy_init();
    }
    library.multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(kAtOnce));
  }
  ~CurlSet() {
    for (Flight& flight : flights) library.easy_cleanup(flight.easy);
    library.multi_cleanup(multi);
  }
  CurlSet(const CurlSet&) = delete;
  CurlSet& operator=(const CurlSet&) = delete;

  bool has_memory() const {
    return multi != nullptr &&
           std::ranges::all_of(flights, [](const Flight& flight) { return flight.easy != nullptr; });
  }

  void begin(Flight& flight, const HttpCall& call, HttpAnswer& answer, const Settings& settings);
  void set_up(Flight& flight, const Settings& settings);
  // It has ended; true: it makes sense to try again.
  bool end(Flight& flight, CURLcode code, const Settings& settings);
  void end_impatient(const Settings& settings, std::vector<Flight*>& ended);
  bool has_moved(Flight& flight);
  // Those of `calls` that are named; returns those to try again.
  std::vector<std::size_t> run(std::span<const HttpCall> calls, std::span<HttpAnswer> answers,
                               std::span<const std::size_t> which, const Settings& settings);
  void wait(Duration time) {
    const auto ms = std::chrono::duration_cast<milliseconds>(time).count();
    library.multi_poll(multi, nullptr, 0, static_cast<int>(ms), nullptr);
  }

  const pull::CurlLibrary& library;
  CURLM* const multi;
  std::array<Flight, kAtOnce> flights;
  RealClock clock;
};

void HttpTransfers::CurlSet::set_up(Flight& flight, const Settings& settings) {
  const HttpCall& call = *flight.call;
  const auto set = [&](CURLoption option, auto value) { library.easy_setopt(flight.easy, option, value); };
  library.easy_reset(flight.easy);
  set(CURLOPT_ERRORBUFFER, flight.why.data());
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, call.url.starts_with("https:") ? "https" : "http");
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // those of a proxy
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // of 7.87, no harm before
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_USERAGENT, "chasqui");
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  set(CURLOPT_BUFFERSIZE, kTransferBuffer);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kTransferBuffer);
  set(CURLOPT_WRITEFUNCTION, &take_body);
  set(CURLOPT_WRITEDATA, &flight);
  set(CURLOPT_HEADERFUNCTION, &take_head);
  set(CURLOPT_HEADERDATA, &flight);
  if (!settings.user.empty()) {
    set(CURLOPT_USERNAME, settings.user.c_str());
    set(CURLOPT_PASSWORD, settings.password.c_str());
    if (settings.signing.empty()) {
      set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    } else {
      set(CURLOPT_AWS_SIGV4, settings.signing.c_str());
    }
  }
  if (call.body) {  // as fields, since libcurl signs no body that it reads from elsewhere
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body->size()));
    set(CURLOPT_POSTFIELDS, call.body->empty() ? "" : reinterpret_cast<const char*>(call.body->data()));
  }
  // No body waits for a leave to be sent. libcurl before 8 signs a header that is taken away, so that one is not.
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
  set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
  set(CURLOPT_HTTPHEADER, flight.headers.get());
}

void HttpTransfers::CurlSet::begin(Flight& flight, const HttpCall& call, HttpAnswer& answer, const Settings& settings) {
  flight.call = &call;
  flight.answer = &answer;
  answer = {};
  flight.why[0] = '\0';
  flight.moved = 0;
  flight.refused_bytes = false;
  curl_slist* headers = nullptr;
  if (settings.signing.empty()) headers = library.slist_append(headers, "Expect:");
  for (const std::string& header : call.headers) headers = library.slist_append(headers, header.c_str());
  if (!settings.signing.empty()) {  // S3 wants it, and libcurl before 8 sends none of its own
    headers = library.slist_append(headers, ("x-amz-content-sha256: " + hash_of(call)).c_str());
  }
  if (!settings.session_token.empty()) {
    headers = library.slist_append(headers, ("X-Amz-Security-Token: " + settings.session_token).c_str());
  }
  flight.headers = HeaderList(headers, ListFree{&library});
  set_up(flight, settings);
  flight.since = clock.now();
  library.multi_add_handle(multi, flight.easy);
}

bool HttpTransfers::CurlSet::end(Flight& flight, CURLcode code, const Settings& settings) {
  HttpAnswer& answer = *flight.answer;
  library.multi_remove_handle(multi, flight.easy);
  curl_off_t seconds_to_wait = 0;
  library.easy_getinfo(flight.easy, CURLINFO_RETRY_AFTER, &seconds_to_wait);
  answer.retry_after = seconds(std::clamp<curl_off_t>(seconds_to_wait, 0, 3600));
  flight.call = nullptr;
  flight.headers.reset();
  if (code == CURLE_OK && answer.status > 0) {
    // S3 wants to be asked again after an error of its own.
    const bool failed = answer.status == 500 && !settings.signing.empty();
    return failed || answer.status == 429 || answer.status == 503;
  }
  answer.is_too_long = flight.refused_bytes;
  answer.why = code == CURLE_OK        ? "an answer without a status"
               : flight.refused_bytes  ? "an answer that is too long"
               : flight.why[0] != '\0' ? flight.why.data()
                                       : library.easy_strerror(code);
  answer.status = 0;
  answer.body = {};
  return is_worth_another_try(code);
}

bool HttpTransfers::CurlSet::has_moved(Flight& flight) {
  curl_off_t up = 0;
  curl_off_t down = 0;
  library.easy_getinfo(flight.easy, CURLINFO_SIZE_UPLOAD_T, &up);
  library.easy_getinfo(flight.easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
  if (up + down < flight.moved + static_cast<curl_off_t>(kProgress)) return false;
  flight.moved = up + down;
  return true;
}

void HttpTransfers::CurlSet::end_impatient(const Settings& settings, std::vector<Flight*>& ended) {
  const TimePoint now = clock.now();
  for (Flight& flight : flights) {
    if (flight.call == nullptr) continue;
    if (has_moved(flight)) flight.since = now;
    if (now - flight.since < settings.patience) continue;
    std::ranges::copy("nothing came in time", flight.why.begin());
    end(flight, CURLE_OPERATION_TIMEDOUT, settings);
    ended.push_back(&flight);
  }
}

std::vector<std::size_t> HttpTransfers::CurlSet::run(std::span<const HttpCall> calls, std::span<HttpAnswer> answers,
                                                     std::span<const std::size_t> which, const Settings& settings) {
  std::vector<std::size_t> again;
  std::vector<Flight*> ended;
  std::vector<Flight*> idle;
  for (Flight& flight : flights) idle.push_back(&flight);
  for (std::size_t next = 0; next < which.size() || idle.size() < kAtOnce;) {
    const TimePoint before = clock.now();
    for (; next < which.size() && !idle.empty(); ++next, idle.pop_back()) {
      begin(*idle.back(), calls[which[next]], answers[which[next]], settings);
    }
    // Large bodies take time to hash, in which nothing of the others could come.
    const Duration spent = clock.now() - before;
    for (Flight& flight : flights) flight.since += spent;
    int running = 0;
    CHECK(library.multi_perform(multi, &running) == CURLM_OK, "libcurl goes on");
    int left = 0;
    ended.clear();
    while (const CURLMsg* const message = library.multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto flight = std::ranges::find(flights, message->easy_handle, &Flight::easy);
      const CURLcode code = message->data.result;  // the message goes with the handle
      if (end(*flight, code, settings)) again.push_back(static_cast<std::size_t>(flight->answer - answers.data()));
      ended.push_back(&*flight);
    }
    end_impatient(settings, ended);
    idle.insert(idle.end(), ended.begin(), ended.end());
    if (ended.empty()) library.multi_poll(multi, nullptr, 0, kPollMs, nullptr);
  }
  return again;
}

Result<std::unique_ptr<HttpTransfers>> HttpTransfers::open(Settings settings) {
  const auto library = pull::curl_library();
  if (!library) return library.error();
  if (!settings.signing.empty() && (*library)->version_info(CURLVERSION_NOW)->version_num < kOldestThatSigns) {
    return Error{ErrorCode::not_supported, "the libcurl of this machine does not sign for S3: 7.88 or newer does", ""};
  }
  auto curl = std::make_unique<CurlSet>(**library);
  CHECK(curl->has_memory(), "libcurl has memory for transfers");
  return std::unique_ptr<HttpTransfers>(new HttpTransfers(std::move(settings), std::move(curl)));
}

HttpTransfers::HttpTransfers(Settings settings, std::unique_ptr<CurlSet> curl)
    : settings_(std::move(settings)), curl_(std::move(curl)) {}

HttpTransfers::~HttpTransfers() = default;

std::vector<HttpAnswer> HttpTransfers::run(std::span<const HttpCall> calls) {
  std::vector<HttpAnswer> answers(calls.size());
  std::vector<std::size_t> which(calls.size());
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = i;
  const TimePoint begun = curl_->clock.now();
  Duration pause = kPause;
  for (int tries = 1; !which.empty(); ++tries, pause *= 2) {
    which = curl_->run(calls, answers, which, settings_);
    for (const std::size_t i : which) pause = std::max(pause, answers[i].retry_after);
    if (tries == kTriesMax || curl_->clock.now() - begun + pause >= settings_.patience) break;
    if (!which.empty()) curl_->wait(pause);
  }
  return answers;
}

}  // namespace chasqui::store
