#include "cache/snapshot_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

namespace chasqui {
namespace {

constexpr std::string_view kSuffix = ".kv";
constexpr std::string_view kPart = ".kv.part";
constexpr std::size_t kDigits = 16;

std::string name_of(std::uint64_t number) {
  std::string name(kDigits, '0');
  for (std::size_t i = kDigits; i-- > 0; number >>= 4) name[i] = "0123456789abcdef"[number & 15];
  return name.append(kSuffix);
}

// Exactly what name_of() makes, with this suffix.
std::optional<std::uint64_t> number_of(std::string_view name, std::string_view suffix) {
  if (name.size() != kDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = name.data() + kDigits;
  if (std::from_chars(name.data(), end, number, 16).ptr != end) return std::nullopt;
  if (!name_of(number).starts_with(name.substr(0, kDigits))) return std::nullopt;
  return number;
}

Error of_another_model() { return {ErrorCode::unavailable, "the folder belongs to another model now", ""}; }

}  // namespace

Result<std::unique_ptr<SnapshotFolder>> SnapshotFolder::open(const std::string& path, const ModelIdentity& identity) {
  auto folder = PrivateFolder::open(path, "snapshots", "cache_disk");
  if (!folder) return folder.error();
  return std::make_unique<SnapshotFolder>(SnapshotFolder(std::move(*folder), identity));
}

std::vector<FoundSnapshot> SnapshotFolder::scan(const SnapshotLimits& limits) {
  using Used = std::tuple<std::int64_t, std::int64_t, std::uint64_t>;  // seconds, nanoseconds, number
  std::vector<std::pair<Used, FoundSnapshot>> found;
  for (const std::string& name : folder_.names()) {
    if (number_of(name, kPart)) ::unlinkat(folder_.get(), name.c_str(), 0);
    const auto number = number_of(name, kSuffix);
    struct stat status {};
    if (!number || ::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    FoundSnapshot file{*number, static_cast<std::uint64_t>(status.st_size), false, {}, {}};
    auto head = read_snapshot_head(folder_.get(), name, identity_, limits);
    if (head) {
      file.usable = true;
      file.key = head->key;
      file.tokens = std::move(head->tokens);
    } else if (head.error().code == ErrorCode::invalid_request) {
      log_warning("a snapshot file is damaged and removed", {{"file", name}, {"reason", head.error().message}});
      ::unlinkat(folder_.get(), name.c_str(), 0);
      continue;
    }
    found.emplace_back(Used{status.st_mtim.tv_sec, status.st_mtim.tv_nsec, *number}, std::move(file));
  }
  std::ranges::sort(found, {}, [](const auto& file) { return file.first; });
  std::vector<FoundSnapshot> out;
  out.reserve(found.size());
  for (auto& [used, file] : found) out.push_back(std::move(file));
  return out;
}

std::unique_ptr<SnapshotFolder> SnapshotFolder::hand_over(const ModelIdentity& identity) {
  gate_->shut();
  for (const std::string& name : folder_.names()) {
    if (number_of(name, kSuffix) || number_of(name, kPart)) ::unlinkat(folder_.get(), name.c_str(), 0);
  }
  const auto synced = sync_folder(folder_.get());
  if (!synced) log_warning(synced.error().message);
  if (synced) gate_->finish();
  return std::make_unique<SnapshotFolder>(SnapshotFolder(folder_.again(), identity));
}

Result<void> SnapshotFolder::write(std::uint64_t number, LastingKey key, std::span<const Token> tokens,
                                   const KvSnapshot& kv) {
  const UseGate::Pass pass(*gate_);
  if (!pass) return of_another_model();
  return write_snapshot(folder_.get(), name_of(number), identity_, key, tokens, kv);
}

Result<LoadedSnapshot> SnapshotFolder::read(std::uint64_t number, const SnapshotLimits& limits) {
  const UseGate::Pass pass(*gate_);
  if (!pass) return of_another_model();
  return read_snapshot(folder_.get(), name_of(number), identity_, limits);
}

Result<SnapshotHead> SnapshotFolder::head(std::uint64_t number, const SnapshotLimits& limits) {
  const UseGate::Pass pass(*gate_);
  if (!pass) return of_another_model();
  return read_snapshot_head(folder_.get(), name_of(number), identity_, limits);
}

void SnapshotFolder::touch(std::uint64_t number) {
  const UseGate::Pass pass(*gate_);
  if (pass) ::utimensat(folder_.get(), name_of(number).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Result<void> SnapshotFolder::remove(std::uint64_t number) {
  const UseGate::Pass pass(*gate_);
  if (!pass) return gone();
  if (::unlinkat(folder_.get(), name_of(number).c_str(), 0) == 0 || errno == ENOENT) return {};
  return Error{ErrorCode::unavailable, std::string("cannot remove a file: ") + std::strerror(errno), ""};
}

Result<void> SnapshotFolder::sync() {
  const UseGate::Pass pass(*gate_);
  return pass ? sync_folder(folder_.get()) : gone();
}

// What another model has been given is gone once that is on disk.
Result<void> SnapshotFolder::gone() const { return gate_->finished() ? Result<void>() : of_another_model(); }

}  // namespace chasqui
