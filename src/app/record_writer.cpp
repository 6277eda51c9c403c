#include "app/record_writer.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread_name.h"
#include "record/byte_stream.h"
#include "record/scheduler_recorder.h"

namespace chasqui {
namespace {

constexpr std::size_t kAnyNumber = SIZE_MAX;  // of items: bytes are what is bounded
constexpr std::size_t kRoomsMax = 64;
constexpr mode_t kRecordMode = 0600;  // who asks when, and how much, is in it

Error refused(const std::string& path, const std::string& why) {
  return invalid_field("--record", "--record " + path + ": " + why);
}

bool is_recording(const std::string& path) {
  std::array<char, kRecordMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  const std::string_view read(begin.data(), static_cast<std::size_t>(file.gcount()));
  const std::string_view name = kRecordMagic.substr(0, kRecordMagic.find(' '));
  return read.empty() || read.starts_with(name);
}

}  // namespace

Result<void> RecordWriter::check(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::exists(there)) {
    if (!fs::is_regular_file(there)) return refused(path, "it is there and no file");
    if (::access(path.c_str(), R_OK | W_OK) != 0) return refused(path, std::strerror(errno));
    if (!is_recording(path)) return refused(path, "it is there already, and is no recording");
  }
  const fs::path named(path);
  const std::string folder = named.has_parent_path() ? named.parent_path().string() : ".";
  if (!named.has_filename()) return refused(path, "it names a folder and no file");
  if (!fs::is_directory(folder, error)) return refused(path, "there is no folder " + folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return refused(path, folder + ": " + std::strerror(errno));
  return {};
}

Result<std::unique_ptr<RecordWriter>> RecordWriter::open(const std::string& path, const RecordLimits& limits) {
  if (auto good = check(path); !good) return good.error();
  // A server that was started again after a crash must not write over what led to it, nor must one that did not come
  // far enough to record anything.
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kRecordMagic.size()) {
    std::filesystem::rename(path, path + ".old", error);
    if (error) return refused(path, "it is there, and cannot be renamed to " + path + ".old: " + error.message());
  }
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kRecordMode);
  if (descriptor < 0) return refused(path, std::strerror(errno));
  return std::unique_ptr<RecordWriter>(new RecordWriter(path, descriptor, limits));
}

RecordWriter::RecordWriter(std::string path, int descriptor, const RecordLimits& limits)
    : path_(std::move(path)), descriptor_(descriptor), limits_(limits), pieces_(kAnyNumber), rooms_(kRoomsMax) {
  metrics_.recording.set(1);
  log_info("recording", {{"file", path_}});
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for other threads
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RecordWriter::~RecordWriter() {
  pieces_.close();
  thread_.join();
  ::close(descriptor_);
}

std::unique_ptr<SchedulerTap> RecordWriter::tap(const RecordedHead& head) {
  return std::make_unique<SchedulerRecorder>(*this, streams_.fetch_add(1), head, secret_);
}

// The limit may be passed by a piece of each worker.
bool RecordWriter::take(RecordPiece&& piece) {
  if (ended_.load(std::memory_order_relaxed)) return false;
  const std::size_t bytes = piece.bytes.size();
  if (waiting_.load(std::memory_order_relaxed) + bytes > limits_.waiting_bytes) {
    ended_.store(true);
    pieces_.push(RecordPiece{});  // tells the writer, behind what waits
    return false;
  }
  metrics_.waiting.set(static_cast<std::int64_t>(waiting_.fetch_add(bytes, std::memory_order_relaxed) + bytes));
  return pieces_.push(std::move(piece));
}

std::string RecordWriter::room() {
  // One thread takes all that are there, under the lock of drain(); others make new ones meanwhile.
  thread_local std::vector<std::string> rooms;
  if (rooms.empty()) rooms_.drain(rooms);
  if (rooms.empty()) return {};
  std::string room = std::move(rooms.back());
  rooms.pop_back();
  return room;
}

void RecordWriter::run() {
  name_this_thread("record");
  if (!write(kRecordMagic)) end(std::string("it cannot be written: ") + std::strerror(errno));
  std::vector<RecordPiece> pieces;
  do {
    pieces_.drain(pieces, Wait::yes);
    for (RecordPiece& piece : pieces) {
      write_piece(piece);
      const std::size_t bytes = piece.bytes.size();
      metrics_.waiting.set(static_cast<std::int64_t>(waiting_.fetch_sub(bytes, std::memory_order_relaxed) - bytes));
      rooms_.push(std::move(piece.bytes));
    }
  } while (!pieces.empty());
}

void RecordWriter::write_piece(const RecordPiece& piece) {
  if (failed_) return;
  if (piece.bytes.empty()) return end("more waited for the disk than may");
  if (written_ + piece.bytes.size() > limits_.file_bytes) return end("the file is as long as it may be");
  bytes_.clear();
  append_piece(piece, bytes_);
  if (!write(bytes_)) end(std::string("it cannot be written: ") + std::strerror(errno));
}

bool RecordWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    written_ += static_cast<std::size_t>(n);
    metrics_.bytes.add(static_cast<std::uint64_t>(n));
  }
  return true;
}

// Once. What a failed write has left of a piece is no whole one, so that nothing behind it would be read.
void RecordWriter::end(const std::string& why) {
  const bool whole = !why.starts_with("it cannot");
  failed_ = true;
  ended_.store(true);
  metrics_.recording.set(0);
  log_error("the recording has ended; the server goes on", {{"file", path_}, {"reason", why}, {"bytes", written_}});
  if (!whole) return;
  for (std::uint32_t stream = 0; stream < streams_.load(); ++stream) {
    RecordPiece last{stream, {}};
    const std::size_t begun = begin_record(TapKind::ended, last.bytes);
    ByteWriter io(last.bytes);
    io(why);
    end_record(begun, last.bytes);
    bytes_.clear();
    append_piece(last, bytes_);
    if (!write(bytes_)) return;
  }
}

}  // namespace chasqui
