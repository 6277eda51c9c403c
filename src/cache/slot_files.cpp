#include "cache/slot_files.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "cache/whole_file.h"

namespace chasqui {
namespace {

constexpr std::size_t kNameMax = kSizeLimit<"slot_name_bytes">;

constexpr std::uint64_t kShare = 4;  // a fourth of all for each tenant that is not alone

// <tenant, 16 hexadecimal digits>-<name>
constexpr std::size_t kTenantDigits = 16;

std::string file_name(std::uint64_t tenant, const std::string& name) {
  std::string out(kTenantDigits, '0');
  for (std::size_t i = out.size(); i-- > 0; tenant >>= 4) out[i] = "0123456789abcdef"[tenant & 15];
  return out.append("-").append(name);
}

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7F; }

// U+0080 to U+009F, which terminals obey like those of ASCII.
bool has_wide_control(std::string_view name) {
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    const auto next = static_cast<unsigned char>(name[i + 1]);
    if (name[i] == '\xC2' && next >= 0x80 && next < 0xA0) return true;
  }
  return false;
}

// What is wrong with it; empty: nothing.
std::string_view fault_of(std::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name.size() > kNameMax) return "must be at most 128 bytes";
  if (!is_valid_utf8(name)) return "must be UTF-8";
  if (std::ranges::any_of(name, is_control) || has_wide_control(name)) return "must not have control characters";
  if (name.find_first_of("/\\:*?\"<>|") != std::string_view::npos) {
    return "must be a name without a path, and without any of / \\ : * ? \" < > |";
  }
  if (name.find("..") != std::string_view::npos) return "must not have two dots in a row";
  if (name.front() == '.' || name.front() == ' ' || name.back() == '.' || name.back() == ' ') {
    return "must not begin or end with a dot or a space";
  }
  if (name.ends_with(kPartSuffix)) return "must not end with .part";
  return {};
}

Error handed_over() {
  return {ErrorCode::unavailable, "the model has just been replaced by another version; try again", ""};
}

}  // namespace

Result<void> check_slot_file_name(std::string_view name) {
  const std::string_view fault = fault_of(name);
  if (fault.empty()) return {};
  return invalid_field("filename", "filename " + std::string(fault));
}

Result<std::unique_ptr<SlotFiles>> SlotFiles::open(const std::string& path, const ModelIdentity& identity,
                                                   std::uint64_t bytes) {
  auto folder = PrivateFolder::open(path, "slots", "slot_save_path");
  if (!folder) return folder.error();
  for (const std::string& name : folder->names()) {
    if (name.ends_with(kPartSuffix)) ::unlinkat(folder->get(), name.c_str(), 0);
  }
  return std::make_unique<SlotFiles>(SlotFiles(std::move(*folder), identity, bytes));
}

std::unique_ptr<SlotFiles> SlotFiles::hand_over(const ModelIdentity& identity) {
  gate_->shut();
  return std::make_unique<SlotFiles>(SlotFiles(folder_.again(), identity, bytes_max_));
}

SlotFiles::Bytes SlotFiles::bytes_beside(const std::string& file) const {
  const std::string_view tenant = std::string_view(file).substr(0, kTenantDigits + 1);
  Bytes bytes;
  for (const std::string& name : folder_.names()) {
    struct stat status {};
    if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (name == file) {
      bytes.former = size;
      continue;
    }
    bytes.all += size;
    if (name.starts_with(tenant)) bytes.own += size;
  }
  return bytes;
}

Result<void> SlotFiles::has_room(const std::string& file, std::uint64_t bytes, bool alone) const {
  const Bytes beside = bytes_beside(file);
  const std::uint64_t share = alone ? bytes_max_ : bytes_max_ / kShare;
  const bool grows = bytes > beside.former;
  std::string allowed;
  if (bytes > bytes_max_ || beside.all > bytes_max_ - bytes) {
    allowed = "all of it may have " + std::to_string(bytes_max_) + " (--slot-save-mib)";
  } else if (grows && (bytes > share || beside.own > share - bytes)) {
    allowed = "your files may have " + std::to_string(share) +
              " together, a fourth of --slot-save-mib, since there are other users";
  } else {
    return {};
  }
  return Error{ErrorCode::too_large,
               "there is no room for " + std::to_string(bytes) + " bytes in the folder for slots: " + allowed +
                   "; overwrite a file, or have some removed",
               "filename"};
}

Result<std::uint64_t> SlotFiles::save(const std::string& name, SlotFileOwner owner, std::span<const Token> tokens,
                                      const KvSnapshot& kv) {
  const UseGate::Pass pass(*gate_);
  if (!pass) return handed_over();
  const std::string file = file_name(owner.key.tenant, name);
  const std::uint64_t bytes = snapshot_file_bytes(tokens.size(), kv.size());
  if (auto room = has_room(file, bytes, owner.alone); !room) return room.error();
  auto written = write_snapshot(folder_.get(), file, identity_, owner.key, tokens, kv);
  if (!written) return written.error();
  return bytes;
}

Result<LoadedSnapshot> SlotFiles::restore(const std::string& name, std::uint64_t tenant,
                                          const SnapshotLimits& limits) const {
  const UseGate::Pass pass(*gate_);
  if (!pass) return handed_over();
  auto loaded = read_snapshot(folder_.get(), file_name(tenant, name), identity_, limits);
  if (loaded && loaded->head.key.tenant != tenant) {
    return Error{ErrorCode::conflict, "it belongs to another user", ""};
  }
  return loaded;
}

}  // namespace chasqui
