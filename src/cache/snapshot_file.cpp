#include "cache/snapshot_file.h"

#include <algorithm>
#include <cstring>

#include <sys/stat.h>

#include "base/checksum.h"
#include "cache/whole_file.h"

namespace chasqui {
namespace {

constexpr char kMagic[8] = {'C', 'h', 'a', 's', 'q', 'u', 'i', 'K'};
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kKvSum = 72;
constexpr std::size_t kHeadSum = 88;
constexpr std::size_t kHeadBytes = 104;

template <class Number>
void put(std::span<std::byte> head, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) head[at + i] = static_cast<std::byte>(number >> 8 * i);
}

template <class Number>
Number get(std::span<const std::byte> head, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(std::to_integer<Number>(head[at + i]) << 8 * i);
  }
  return number;
}

template <std::size_t n>
void put_bytes(std::span<std::byte> head, std::size_t at, const std::array<std::byte, n>& bytes) {
  std::ranges::copy(bytes, head.begin() + static_cast<std::ptrdiff_t>(at));
}

template <std::size_t n>
bool has_bytes(std::span<const std::byte> head, std::size_t at, const std::array<std::byte, n>& bytes) {
  return std::ranges::equal(bytes, head.subspan(at, n));
}

Error damaged(std::string why) { return {ErrorCode::invalid_request, std::move(why), ""}; }
Error foreign(std::string why) { return {ErrorCode::conflict, std::move(why), ""}; }

Checksum checksum_of(const KvSnapshot& kv) {
  Checksummer sum;
  for (const KvBlockPtr& block : kv.blocks()) sum.add(block->bytes());
  return sum.result();
}

// Header and tokens, with both checksums.
std::vector<std::byte> make_head(const ModelIdentity& identity, LastingKey key, std::span<const Token> tokens,
                                 const KvSnapshot& kv) {
  std::vector<std::byte> head(kHeadBytes + 4 * tokens.size());
  std::memcpy(head.data(), kMagic, sizeof kMagic);
  put(head, 8, kVersion);
  put(head, 10, static_cast<std::uint16_t>(kv.block_tokens()));
  put(head, 12, static_cast<std::uint32_t>(tokens.size()));
  put(head, 16, std::uint64_t{kv.size()});
  put(head, 24, key.tenant);
  put(head, 32, key.adapter);
  put_bytes(head, 40, identity.weights);
  put_bytes(head, 56, identity.context);
  put_bytes(head, kKvSum, checksum_of(kv));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    put(head, kHeadBytes + 4 * i, static_cast<std::uint32_t>(tokens[i]));
  }
  Checksummer sum;
  sum.add(std::span(head).first(kHeadSum));
  sum.add(std::span(head).subspan(kHeadBytes));
  put_bytes(head, kHeadSum, sum.result());
  return head;
}

// An open file whose header and tokens are good and whose size is what they say.
struct Opened {
  FileDescriptor file;
  SnapshotHead head;
  TokenCount block_tokens = 0;
  Checksum kv_sum;
};

Result<void> check_head(std::span<const std::byte> head, std::uint64_t file_bytes, const ModelIdentity& identity,
                        const SnapshotLimits& limits) {
  if (std::memcmp(head.data(), kMagic, sizeof kMagic) != 0) return damaged("it is not a snapshot");
  const auto version = get<std::uint16_t>(head, 8);
  if (version != kVersion) return foreign("it has version " + std::to_string(version) + " of the format");
  if (!has_bytes(head, 40, identity.weights)) return foreign("it is of another model");
  if (!has_bytes(head, 56, identity.context)) return foreign("it was made with other settings of the context");
  const auto tokens = get<std::uint32_t>(head, 12);
  const auto kv_bytes = get<std::uint64_t>(head, 16);
  // First the limits, so that the sum of the sizes cannot overflow; then the sum, so that nothing is allocated for
  // what is not there.
  if (std::cmp_greater(tokens, limits.tokens)) return Error{ErrorCode::too_large, "it has too many tokens", ""};
  if (kv_bytes > limits.kv_bytes) return Error{ErrorCode::too_large, "it has too much KV", ""};
  if (tokens == 0 || kv_bytes == 0) return damaged("it is empty");
  const bool in_blocks = get<std::uint16_t>(head, 10) > 0;
  if (in_blocks && kv_bytes % tokens != 0) return damaged("its KV cannot be divided as it says");
  if (snapshot_file_bytes(tokens, kv_bytes) != file_bytes) return damaged("its size is not what it says");
  return {};
}

std::size_t bytes_of_head(std::span<const std::byte> head) {
  return kHeadBytes + 4 * std::size_t{get<std::uint32_t>(head, 12)};
}

// `head`: with the tokens. REQUIRES: check_head() has found nothing
Result<void> read_head(std::span<const std::byte> head, Opened& out) {
  Checksummer sum;
  sum.add(head.first(kHeadSum));
  sum.add(head.subspan(kHeadBytes));
  if (!has_bytes(head, kHeadSum, sum.result())) return damaged("its header or its tokens were changed");
  out.head.key = {get<std::uint64_t>(head, 24), get<std::uint64_t>(head, 32)};
  out.head.kv_bytes = get<std::uint64_t>(head, 16);
  out.block_tokens = get<std::uint16_t>(head, 10);
  out.head.tokens.resize((head.size() - kHeadBytes) / 4);
  for (std::size_t i = 0; i < out.head.tokens.size(); ++i) {
    out.head.tokens[i] = static_cast<Token>(get<std::uint32_t>(head, kHeadBytes + 4 * i));
  }
  std::ranges::copy(head.subspan(kKvSum, out.kv_sum.size()), out.kv_sum.begin());
  return {};
}

Result<std::shared_ptr<KvSnapshot>> room_for(const Opened& opened) {
  const auto tokens = static_cast<TokenCount>(opened.head.tokens.size());
  auto kv = KvSnapshot::with_room(opened.head.kv_bytes, tokens, opened.block_tokens);
  if (!kv) return Error{ErrorCode::unavailable, "there is no memory for its KV", ""};
  return kv;
}

Result<Opened> open_snapshot(int folder, const std::string& name, const ModelIdentity& identity,
                             const SnapshotLimits& limits) {
  auto opened = open_whole(folder, name);
  if (!opened) return opened.error();
  Opened out;
  out.file = std::move(opened->file);
  const std::uint64_t file_bytes = opened->bytes;
  if (file_bytes < kHeadBytes) return damaged("it is too short");

  std::vector<std::byte> head(kHeadBytes);
  if (auto got = read_exactly(out.file.get(), head); !got) return got.error();
  if (auto good = check_head(head, file_bytes, identity, limits); !good) return good.error();
  head.resize(bytes_of_head(head));
  if (auto got = read_exactly(out.file.get(), std::span(head).subspan(kHeadBytes)); !got) return got.error();
  if (auto good = read_head(head, out); !good) return good.error();
  return out;
}

}  // namespace

std::uint64_t snapshot_file_bytes(std::size_t tokens, std::uint64_t kv_bytes) {
  return kHeadBytes + 4 * std::uint64_t{tokens} + kv_bytes;
}

Result<void> write_snapshot(int folder, const std::string& name, const ModelIdentity& identity, LastingKey key,
                            std::span<const Token> tokens, const KvSnapshot& kv) {
  CHECK(!tokens.empty() && std::cmp_equal(kv.tokens(), tokens.size()));
  const std::vector<std::byte> head = make_head(identity, key, tokens, kv);
  FilePieces pieces{head};
  for (const KvBlockPtr& block : kv.blocks()) pieces.push_back(block->bytes());
  if (auto written = write_whole(folder, name, pieces); !written) return written;
  return sync_folder(folder);
}

Result<SnapshotHead> read_snapshot_head(int folder, const std::string& name, const ModelIdentity& identity,
                                        const SnapshotLimits& limits) {
  auto opened = open_snapshot(folder, name, identity, limits);
  if (!opened) return opened.error();
  return std::move(opened->head);
}

Result<LoadedSnapshot> read_snapshot(int folder, const std::string& name, const ModelIdentity& identity,
                                     const SnapshotLimits& limits) {
  auto opened = open_snapshot(folder, name, identity, limits);
  if (!opened) return opened.error();
  auto kv = room_for(*opened);
  if (!kv) return kv.error();
  for (std::size_t i = 0; i < (*kv)->blocks().size(); ++i) {
    if (auto got = read_exactly(opened->file.get(), (*kv)->writable(i)); !got) return got.error();
  }
  if (checksum_of(**kv) != opened->kv_sum) return damaged("its KV was changed");
  ::futimens(opened->file.get(), nullptr);  // for the order of use; without it only a worse choice is made
  return LoadedSnapshot{std::move(opened->head), std::move(*kv)};
}

std::vector<std::byte> pack_snapshot(const ModelIdentity& identity, LastingKey key, std::span<const Token> tokens,
                                     const KvSnapshot& kv) {
  CHECK(!tokens.empty() && std::cmp_equal(kv.tokens(), tokens.size()));
  std::vector<std::byte> out = make_head(identity, key, tokens, kv);
  out.reserve(out.size() + kv.size());
  for (const KvBlockPtr& block : kv.blocks()) {
    out.insert(out.end(), block->bytes().begin(), block->bytes().end());
  }
  return out;
}

std::span<const std::byte> packed_head(std::span<const std::byte> packed) {
  return packed.first(bytes_of_head(packed));
}

Result<SnapshotHead> unpack_snapshot_head(std::span<const std::byte> bytes, const ModelIdentity& identity,
                                          const SnapshotLimits& limits) {
  if (bytes.size() < kHeadBytes) return damaged("it is too short");
  // The size of the whole is what it says.
  const std::uint64_t whole = snapshot_file_bytes(get<std::uint32_t>(bytes, 12), get<std::uint64_t>(bytes, 16));
  if (auto good = check_head(bytes, whole, identity, limits); !good) return good.error();
  if (bytes.size() != bytes_of_head(bytes)) return damaged("it does not end behind its tokens");
  Opened opened;
  if (auto good = read_head(bytes, opened); !good) return good.error();
  return std::move(opened.head);
}

Result<LoadedSnapshot> unpack_snapshot(std::span<const std::byte> bytes, const ModelIdentity& identity,
                                       const SnapshotLimits& limits) {
  if (bytes.size() < kHeadBytes) return damaged("it is too short");
  if (auto good = check_head(bytes, bytes.size(), identity, limits); !good) return good.error();
  Opened opened;
  const std::size_t head_bytes = bytes_of_head(bytes);
  if (auto good = read_head(bytes.first(head_bytes), opened); !good) return good.error();
  auto kv = room_for(opened);
  if (!kv) return kv.error();
  std::span<const std::byte> rest = bytes.subspan(head_bytes);
  for (std::size_t i = 0; i < (*kv)->blocks().size(); ++i) {
    const std::span<std::byte> block = (*kv)->writable(i);
    std::ranges::copy(rest.first(block.size()), block.begin());
    rest = rest.subspan(block.size());
  }
  if (checksum_of(**kv) != opened.kv_sum) return damaged("its KV was changed");
  return LoadedSnapshot{std::move(opened.head), std::move(*kv)};
}

}  // namespace chasqui
