#include "engine/encoding_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/snapshot_file.h"
#include "cache/whole_file.h"

namespace chasqui {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kRowsSuffix = ".rows";
constexpr std::size_t kTenantDigits = 16;
constexpr std::size_t kNameBytes = kTenantDigits + 1 + 2 * sizeof(Checksum) + kRowsSuffix.size();
constexpr ModelIdentity kNoModel{};  // a unit's identity says of which projector they are

void add_hex(std::string& out, unsigned byte) { out.append({kHexDigits[byte >> 4], kHexDigits[byte & 15]}); }

std::uint64_t hex_at(const std::string& name, std::size_t at, std::size_t digits) {
  std::uint64_t number = 0;
  std::from_chars(name.data() + at, name.data() + at + digits, number, 16);
  return number;
}

std::vector<Token> places_of(const MediaUnit& unit) {
  std::vector<Token> places(static_cast<std::size_t>(unit.positions));
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = media_token(unit.identity, static_cast<TokenCount>(i));
  }
  return places;
}

}  // namespace

std::string EncodingFolder::name_of(const Key& key) {
  std::string name;
  for (std::size_t i = kTenantDigits / 2; i-- > 0;) add_hex(name, static_cast<unsigned>(key.tenant >> 8 * i & 255));
  name += '-';
  for (const std::byte byte : key.identity) add_hex(name, std::to_integer<unsigned>(byte));
  return name + std::string(kRowsSuffix);
}

Result<std::shared_ptr<EncodingFolder>> EncodingFolder::open(const std::string& path, std::uint64_t bytes_max) {
  auto folder = PrivateFolder::open(path, "encoded pictures and sounds", "--cache-disk");
  if (!folder) return folder.error();
  std::shared_ptr<EncodingFolder> opened(new EncodingFolder(std::move(*folder), bytes_max));
  if (auto scanned = opened->scan(); !scanned) return scanned.error();
  log_info("encoded pictures and sounds on disk",
           {{"folder", path}, {"files", opened->files_.size()}, {"bytes", opened->bytes()}});
  return opened;
}

Result<void> EncodingFolder::scan() {
  const SharedLock::Writing alone(lock_);
  std::vector<std::tuple<std::int64_t, Key, std::uint64_t>> found;  // when it was used, which it is, and its bytes
  const std::vector<std::string> names = folder_.names();
  if (names.empty()) {  // its lock is there
    return Error{ErrorCode::unavailable, "the folder " + path() + " cannot be listed", "--cache-disk"};
  }
  for (const std::string& name : names) {
    if (name.size() == kNameBytes + std::strlen(kPartSuffix) && name.ends_with(kPartSuffix)) {
      ::unlinkat(folder_.get(), name.c_str(), 0);
    }
    if (name.size() != kNameBytes) continue;
    Key key{.tenant = hex_at(name, 0, kTenantDigits)};
    for (std::size_t i = 0; i < key.identity.size(); ++i) {
      key.identity[i] = static_cast<std::byte>(hex_at(name, kTenantDigits + 1 + 2 * i, 2));
    }
    if (name != name_of(key)) continue;  // it is not one of ours
    struct stat status {};
    if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    found.emplace_back(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, key,
                       static_cast<std::uint64_t>(status.st_size));
  }
  std::ranges::sort(found);
  for (const auto& [used, key, bytes] : found) add(key, bytes);
  make_room(0);
  return {};
}

bool EncodingFolder::fits(std::uint64_t bytes) const {
  return this->bytes() + bytes <= bytes_max_ && files_.size() + (bytes > 0 ? 1 : 0) <= kFilesMax;
}

void EncodingFolder::add(const Key& key, std::uint64_t bytes) {
  by_key_[key] = files_.insert(files_.end(), {key, bytes});
  metrics_.bytes.add(static_cast<std::int64_t>(bytes));
  metrics_.files.add(1);
}

// Whether it is gone. It stays known otherwise.
bool EncodingFolder::remove(const Key& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return true;
  const std::string name = name_of(key);
  if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    log_warning("a file of an encoded picture or sound could not be removed",
                {{"file", name}, {"reason", std::strerror(errno)}});
    return false;
  }
  metrics_.bytes.add(-static_cast<std::int64_t>(found->second->bytes));
  metrics_.files.add(-1);
  files_.erase(found->second);
  by_key_.erase(found);
  return true;
}

// Whether there is.
bool EncodingFolder::make_room(std::uint64_t bytes) {
  while (!files_.empty() && !fits(bytes)) {
    if (!remove(Key(files_.front().key))) return false;
  }
  return fits(bytes);
}

std::vector<float> EncodingFolder::read(std::uint64_t tenant, const MediaUnit& unit) {
  const SharedLock::Writing alone(lock_);
  const Key key{tenant, unit.identity};
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return {};
  const SnapshotLimits limits{.kv_bytes = found->second->bytes, .tokens = unit.positions};
  const std::vector<Token> places = places_of(unit);
  const auto loaded = read_snapshot(folder_.get(), name_of(key), kNoModel, limits);
  const std::size_t row = places.size() * sizeof(float);
  const bool same = loaded && loaded->head.key == LastingKey{tenant, 0} && loaded->head.tokens == places &&
                    loaded->kv->blocks().size() == 1 && loaded->kv->size() % row == 0;
  if (!same) {
    log_warning("a file of an encoded picture or sound is not used; it is encoded again",
                {{"file", name_of(key)}, {"reason", loaded ? "it is of another one" : loaded.error().message}});
    // What the system refuses, it may allow later.
    if (loaded || loaded.error().code != ErrorCode::unavailable) remove(key);
    return {};
  }
  files_.splice(files_.end(), files_, found->second);
  std::vector<float> rows(loaded->kv->size() / sizeof(float));
  std::memcpy(rows.data(), loaded->kv->bytes().data(), loaded->kv->size());
  return rows;
}

void EncodingFolder::write(std::uint64_t tenant, const MediaUnit& unit, std::span<const float> rows) {
  CHECK(!rows.empty() && rows.size() % static_cast<std::size_t>(unit.positions) == 0);
  const SharedLock::Writing alone(lock_);
  const Key key{tenant, unit.identity};
  const std::vector<Token> places = places_of(unit);
  const std::uint64_t bytes = snapshot_file_bytes(places.size(), rows.size_bytes());
  if (bytes > bytes_max_ || !remove(key) || !make_room(bytes)) return;
  KvSnapshot kept(rows.size_bytes(), unit.positions);
  std::memcpy(kept.bytes().data(), rows.data(), rows.size_bytes());
  const auto written = write_snapshot(folder_.get(), name_of(key), kNoModel, {tenant, 0}, places, kept);
  add(key, bytes);  // also where it cannot be told what is there
  if (!written && !complained_) {
    log_warning("an encoded picture or sound could not be written",
                {{"folder", path()}, {"reason", written.error().message}});
  }
  complained_ = !written;
  if (!written) remove(key);
}

Result<std::size_t> EncodingFolder::forget(std::uint64_t tenant) {
  const SharedLock::Writing alone(lock_);
  std::vector<Key> theirs;
  for (auto each = by_key_.lower_bound({tenant, {}}); each != by_key_.end() && each->first.tenant == tenant; ++each) {
    theirs.push_back(each->first);
  }
  const auto removed = std::ranges::count_if(theirs, [this](const Key& key) { return remove(key); });
  if (auto synced = sync_folder(folder_.get()); !synced) return synced.error();
  if (std::cmp_less(removed, theirs.size())) {
    return Error{ErrorCode::unavailable, "files of encoded pictures or sounds could not be removed", ""};
  }
  return static_cast<std::size_t>(removed);
}

}  // namespace chasqui
