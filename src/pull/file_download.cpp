#include "pull/file_download.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chasqui::pull {
namespace {

constexpr Duration kLockPause = std::chrono::milliseconds(200);
constexpr std::size_t kReadBytes = 1 << 20;

// Git sums up what a file is and how long before what is in it.
net::Digest fresh_digest(const HubFile& file) {
  net::Digest out(file.large ? net::Digest::Kind::sha256 : net::Digest::Kind::sha1);
  if (!file.large) out.add("blob " + std::to_string(file.bytes) + '\0');
  return out;
}

// "bytes 100-199/200" → 100.
std::optional<std::uint64_t> first_of_range(std::string_view range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!range.starts_with(kUnit)) return std::nullopt;
  std::uint64_t first = 0;
  const char* const end = range.data() + range.size();
  const auto [at, failed] = std::from_chars(range.data() + kUnit.size(), end, first);
  if (failed != std::errc() || at == end || *at != '-') return std::nullopt;
  return first;
}

// Of an ETag the checksum in it, where it is one.
std::string_view checksum_of(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

}  // namespace

FileDownload::FileDownload(const DownloadPlace& place, const HubFile& file)
    : place_(place), file_(file), digest_(fresh_digest(file)), retries_(place.retries) {}

Error FileDownload::cannot(const std::string& path) const {
  const int why = errno;
  const bool full = why == ENOSPC || why == EDQUOT;
  return {full ? ErrorCode::storage_full : ErrorCode::unavailable, path + ": " + std::strerror(why), ""};
}

bool FileDownload::fail(ErrorCode code, const std::string& why) {
  failure_ = Error{code, why, ""};
  return false;
}

Result<FileDescriptor> FileDownload::wait_for_lock() {
  for (bool told = false;; told = true) {
    auto lock = place_.folder.lock(file_);
    if (!lock || lock->is_open()) return lock;
    if (!told) place_.watcher.waits(file_.path);
    if (place_.stop.wait(kLockPause)) return stopped_error();
  }
}

Result<void> FileDownload::open() {
  const std::string path = place_.folder.partial(file_).string();
  partial_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  struct stat is {};
  if (!partial_.is_open() || ::fstat(partial_.get(), &is) != 0) return cannot(path);
  if (static_cast<std::uint64_t>(is.st_size) > file_.bytes) return begin_again();
  return {};
}

// What an earlier time has left is summed up before anything is added to it.
Result<void> FileDownload::read_partial() {
  std::string piece(kReadBytes, '\0');
  while (have_ < file_.bytes) {
    const ssize_t got = ::pread(partial_.get(), piece.data(), piece.size(), static_cast<off_t>(have_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot(place_.folder.partial(file_).string());
    if (got == 0) break;
    digest_.add({piece.data(), static_cast<std::size_t>(got)});
    have_ += static_cast<std::uint64_t>(got);
    if (place_.stop.is_set()) return stopped_error();
  }
  farthest_ = have_;
  pieced_ = have_ > 0;
  return {};
}

Result<void> FileDownload::begin_again() {
  if (::ftruncate(partial_.get(), 0) != 0) return cannot(place_.folder.partial(file_).string());
  digest_ = fresh_digest(file_);
  have_ = 0;
  pieced_ = false;
  place_.watcher.moves(0);
  return {};
}

bool FileDownload::begins(const AnswerHead& head) {
  // The commit is fixed, so that only a hub in disorder has another content now. Where it is not the hub itself that
  // answers, the ETag is another's and says nothing.
  const std::string_view now = checksum_of(head.header("x-linked-etag"));
  if (is_hex(now, file_.oid.size()) && now != file_.oid) {
    return fail(ErrorCode::conflict, file_.path + " is another file at the hub by now: its checksum is " +
                                         std::string(now) + " instead of " + file_.oid);
  }
  if (head.status == 206) {
    if (first_of_range(head.header("content-range")) == have_) return true;
    return fail(ErrorCode::unavailable, file_.path + ": the server sends another part than was asked for");
  }
  if (have_ == 0) return true;
  const auto again = begin_again();  // a server that knows no ranges
  return again || fail(again.error().code, again.error().message);
}

bool FileDownload::take(std::string_view bytes) {
  if (bytes.size() > file_.bytes - have_) {
    return fail(ErrorCode::conflict,
                file_.path + " is longer than the " + std::to_string(file_.bytes) + " bytes that the hub says");
  }
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t wrote = ::pwrite(partial_.get(), rest.data(), rest.size(), static_cast<off_t>(have_));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      failure_ = cannot(place_.folder.partial(file_).string());
      return false;
    }
    const auto count = static_cast<std::size_t>(wrote);
    digest_.add(rest.substr(0, count));
    rest.remove_prefix(count);
    have_ += count;
    came_ += count;
  }
  place_.watcher.moves(have_);
  return true;
}

// What kept it from bringing all the rest. Of code `unavailable` where trying again makes sense.
std::optional<Error> FileDownload::fetch_once() {
  failure_.reset();
  pieced_ = have_ > 0;
  TransferCall call;
  call.from = have_;
  call.begins = [this](const AnswerHead& head) { return begins(head); };
  call.piece = [this](std::string_view bytes) { return take(bytes); };
  const TransferAnswer answer = place_.hub.get(place_.repo, place_.commit, file_.path, std::move(call));
  using enum TransferAnswer::Ending;
  if (failure_) return failure_;
  if (answer.ending == stopped) return stopped_error();
  const bool brought = answer.head.status == 200 || answer.head.status == 206;
  if (have_ == file_.bytes && brought) return std::nullopt;
  if (answer.ending == answered && answer.head.status == 416) {
    if (auto again = begin_again(); !again) return again.error();
    return Error{ErrorCode::unavailable, file_.path + ": the server does not have that part", ""};
  }
  if (answer.ending == answered && brought) {
    return Error{ErrorCode::unavailable, file_.path + ": the server ended it early", ""};
  }
  Error out = refusal_of(place_.hub.question(place_.repo, place_.commit, file_.path), answer);
  // It was there when the hub was asked for its list.
  if (answer.ending == unreachable) out.code = ErrorCode::unavailable;
  return out;
}

Result<void> FileDownload::fetch_rest() {
  while (have_ < file_.bytes) {
    const auto failed = fetch_once();
    if (!failed) break;
    if (failed->code != ErrorCode::unavailable || place_.stop.is_set()) return *failed;
    retries_.brought(have_ > farthest_ ? have_ - farthest_ : 0);
    farthest_ = std::max(farthest_, have_);
    const auto pause = retries_.next(failed->retry_after);
    if (!pause) return *failed;
    place_.watcher.notes(failed->message + "; going on");
    if (place_.stop.wait(*pause)) return stopped_error();
  }
  return {};
}

Result<void> FileDownload::fetch_until_right() {
  for (bool last = false;; last = true) {
    if (auto fetched = fetch_rest(); !fetched) return fetched;
    const std::string sum = digest_.hex();
    if (sum == file_.oid) return {};
    if (last || !pieced_) {
      std::error_code unknown;
      std::filesystem::remove(place_.folder.partial(file_), unknown);
      return Error{ErrorCode::conflict,
                   file_.path + " is damaged: its checksum is " + sum + " instead of " + file_.oid +
                       "; what came of it is removed",
                   ""};
    }
    // An earlier time, or a part of it, may be at fault: once more, from its beginning.
    place_.watcher.notes(file_.path + ": its parts do not fit together; fetching all of it");
    if (auto again = begin_again(); !again) return again;
  }
}

// On disk before it has its name: after a power cut a name means a whole content.
Result<void> FileDownload::keep() {
  const std::string from = place_.folder.partial(file_).string();
  if (::fsync(partial_.get()) != 0) return cannot(from);
  std::error_code failed;
  std::filesystem::rename(from, place_.folder.blob(file_), failed);
  if (failed) return Error{ErrorCode::unavailable, from + ": " + failed.message(), ""};
  return {};
}

Result<std::uint64_t> FileDownload::run() {
  const auto lock = wait_for_lock();
  if (!lock) return lock.error();
  if (place_.folder.has(place_.commit, file_)) {  // another process has fetched it meanwhile
    place_.watcher.knows(file_.path, file_.bytes);
    return std::uint64_t{0};
  }
  if (auto opened = open(); !opened) return opened.error();
  place_.watcher.begins(file_.path, file_.bytes, place_.folder.partial_bytes(file_));
  if (auto read = read_partial(); !read) return read.error();
  if (auto fetched = fetch_until_right(); !fetched) return fetched.error();
  if (auto kept = keep(); !kept) return kept.error();
  place_.watcher.ends(file_.path, file_.bytes);
  return came_;
}

}  // namespace chasqui::pull
