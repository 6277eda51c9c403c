// One snapshot in one file: how it is laid out, written so that it is there whole or not at all, and read so that
// nothing of a file is believed before it was checked. Functions over a folder's descriptor; any thread, one at a time
// for each name.
//
//   at  bytes
//    0      8  magic, "ChasquiK"
//    8      2  version of this layout
//   10      2  tokens of one block of the KV, all but the last; 0: it is in one piece
//   12      4  number of tokens, n
//   16      8  number of bytes of KV, k
//   24      8  tenant, and
//   32      8  adapter: whose KV it is
//   40     32  model and context that made it
//   72     16  checksum of the KV
//   88     16  checksum of the bytes 0 … 87 and of the tokens
//  104     4n  tokens
//   …       k  KV, as the Model gave it; nothing follows
//
// Numbers are little-endian. A write goes to `name` + ".part", which is synced and then renamed, and then the folder is
// synced: whatever happens, `name` is what it was before or what was to be written, and once write_snapshot() has said
// so, it is the latter. The checksums find accidents. Against attackers there is the folder's mode: a user who may
// write there as the server's user could as well replace the model.
//
// Errors, by code (and so by the label in the metrics):
//   not_found        there is no such file
//   invalid_request  damaged: not one of ours, cut short, too long, or its checksums are wrong
//   conflict         foreign: of another model, other settings or another version
//   too_large        more than `limits` allow
//   unavailable      the system refuses: what it says is in the message
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/kv_snapshot.h"
#include "core/model_identity.h"
#include "core/types.h"

namespace chasqui {

struct SnapshotLimits {
  std::uint64_t kv_bytes = std::uint64_t{1} << 40;
  TokenCount tokens = 1 << 24;
};

struct SnapshotHead {
  LastingKey key;
  std::vector<Token> tokens;  // there are some
  std::uint64_t kv_bytes = 0;
};

struct LoadedSnapshot {
  SnapshotHead head;
  KvSnapshotPtr kv;
};

// What a file of so many tokens and bytes takes.
std::uint64_t snapshot_file_bytes(std::size_t tokens, std::uint64_t kv_bytes);

// REQUIRES: there are as many tokens as the snapshot has, and there are some
Result<void> write_snapshot(int folder, const std::string& name, const ModelIdentity& identity, LastingKey key,
                            std::span<const Token> tokens, const KvSnapshot& kv);

// Everything but the KV, of which only the size is checked.
Result<SnapshotHead> read_snapshot_head(int folder, const std::string& name, const ModelIdentity& identity,
                                        const SnapshotLimits& limits);

// All of it, and it is what was written. Marks the file as used now.
Result<LoadedSnapshot> read_snapshot(int folder, const std::string& name, const ModelIdentity& identity,
                                     const SnapshotLimits& limits);

// The same as bytes in memory, for stores that are no folder.
// REQUIRES: as write_snapshot()
std::vector<std::byte> pack_snapshot(const ModelIdentity& identity, LastingKey key, std::span<const Token> tokens,
                                     const KvSnapshot& kv);
// What of it says whose it is and of which tokens, at the beginning of `packed`.
std::span<const std::byte> packed_head(std::span<const std::byte> packed);
// That alone.
Result<SnapshotHead> unpack_snapshot_head(std::span<const std::byte> bytes, const ModelIdentity& identity,
                                          const SnapshotLimits& limits);
Result<LoadedSnapshot> unpack_snapshot(std::span<const std::byte> bytes, const ModelIdentity& identity,
                                       const SnapshotLimits& limits);

}  // namespace chasqui
