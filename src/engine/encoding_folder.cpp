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
  opened->scan();
  log_info("encoded pictures and sounds on disk",
           {{"folder", path}, {"files", opened->kept_.size()}, {"bytes", opened->bytes()}});
  return opened;
}

void EncodingFolder::scan() {
  const SharedLock::Writing alone(lock_);
  std::vector<std::tuple<std::int64_t, Key, std::uint64_t>> found;  // when it was used, which it is, and its bytes
  for (const std::string& name : folder_.names()) {
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
  for (const auto& [used, key, bytes] : found) {
    kept_[key] = {bytes, ++uses_};
    bytes_ += bytes;
  }
  make_room(0);
}

// Whether it is gone. It stays known otherwise.
bool EncodingFolder::remove(const Key& key) {
  const auto found = kept_.find(key);
  if (found == kept_.end()) return true;
  const std::string name = name_of(key);
  if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    log_warning("a file of an encoded picture or sound could not be removed",
                {{"file", name}, {"reason", std::strerror(errno)}});
    return false;
  }
  bytes_ -= found->second.bytes;
  kept_.erase(found);
  return true;
}

void EncodingFolder::make_room(std::uint64_t bytes) {
  while (!kept_.empty() && bytes_ + bytes > bytes_max_) {
    const auto oldest = std::ranges::min_element(kept_, {}, [](const auto& each) { return each.second.used; });
    if (!remove(Key(oldest->first))) return;
  }
}

std::vector<float> EncodingFolder::read(std::uint64_t tenant, const MediaUnit& unit) {
  const SharedLock::Writing alone(lock_);
  const Key key{tenant, unit.identity};
  const auto found = kept_.find(key);
  if (found == kept_.end()) return {};
  const SnapshotLimits limits{.kv_bytes = found->second.bytes, .tokens = unit.positions};
  const std::vector<Token> places = places_of(unit);
  const auto loaded = read_snapshot(folder_.get(), name_of(key), kNoModel, limits);
  const std::size_t row = places.size() * sizeof(float);
  const bool same = loaded && loaded->head.key == LastingKey{tenant, 0} && loaded->head.tokens == places &&
                    loaded->kv->blocks().size() == 1 && loaded->kv->size() % row == 0;
  if (!same) {
    log_warning("a file of an encoded picture or sound is refused; it is encoded again",
                {{"file", name_of(key)}, {"reason", loaded ? "it is of another one" : loaded.error().message}});
    remove(key);
    return {};
  }
  found->second.used = ++uses_;
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
  if (bytes > bytes_max_ || !remove(key)) return;
  make_room(bytes);
  if (bytes_ + bytes > bytes_max_) return;
  KvSnapshot kept(rows.size_bytes(), unit.positions);
  std::memcpy(kept.bytes().data(), rows.data(), rows.size_bytes());
  const auto written = write_snapshot(folder_.get(), name_of(key), kNoModel, {tenant, 0}, places, kept);
  if (written) {
    kept_[key] = {bytes, ++uses_};
    bytes_ += bytes;
  } else {
    ::unlinkat(folder_.get(), name_of(key).c_str(), 0);  // not synced, and not known: an erase would not find it
    if (complained_) return;
    log_warning("an encoded picture or sound could not be written",
                {{"folder", folder_.path()}, {"reason", written.error().message}});
  }
  complained_ = !written;
}

Result<std::size_t> EncodingFolder::forget(std::uint64_t tenant) {
  const SharedLock::Writing alone(lock_);
  std::vector<Key> theirs;
  for (auto each = kept_.lower_bound({tenant, {}}); each != kept_.end() && each->first.tenant == tenant; ++each) {
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
