// The KV of one sequence, copied out of its slot into host memory: immutable, and good for any slot of the same model
// and adapter. A copy of the pointer is a lease: its holder may read the bytes, and they stay. Made by the
// Model, kept by the PrefixCache; worker thread only.
//
// A snapshot is a list of blocks. Where the model copies ranges of positions (ModelShape::kv_block), each block but the
// last holds that many positions, and snapshots of sequences that begin alike share the blocks of their common prefix.
// Elsewhere a snapshot is one block.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/pages.h"
#include "core/types.h"

namespace chasqui {

// Immutable once it is in a snapshot.
class KvBlock {
 public:
  // Room for `size` bytes, not cleared.
  KvBlock(std::size_t size, TokenCount tokens) : KvBlock(Pages(size), tokens) {}
  KvBlock(Pages pages, TokenCount tokens) : pages_(std::move(pages)), tokens_(tokens) {}

  std::span<std::byte> bytes() { return pages_.bytes(); }
  std::span<const std::byte> bytes() const { return pages_.bytes(); }
  std::size_t size() const { return pages_.bytes().size(); }
  TokenCount tokens() const { return tokens_; }

 private:
  Pages pages_;
  TokenCount tokens_;
};
using KvBlockPtr = std::shared_ptr<const KvBlock>;

class KvSnapshot {
 public:
  using Blocks = std::vector<KvBlockPtr>;

  // In one block, with room for `size` bytes, not cleared: the maker of a snapshot fills all of it.
  KvSnapshot(std::size_t size, TokenCount tokens);
  // REQUIRES: each block but the last has `block_tokens` tokens, the last one at most as many
  KvSnapshot(Blocks blocks, TokenCount block_tokens);
  // In one block.
  explicit KvSnapshot(KvBlockPtr block);

  // With room for `size` bytes, equally many for each token. Null: they do not divide so, or the system has no memory
  // for them.
  static std::shared_ptr<KvSnapshot> with_room(std::size_t size, TokenCount tokens, TokenCount block_tokens);
  // The same without any bytes, of which only the sizes count: what was recorded, and is scheduled again.
  static std::shared_ptr<KvSnapshot> hollow(std::size_t size, TokenCount tokens, TokenCount block_tokens);
  // The first `from` tokens of `begin`, whose blocks are shared, and after them those of `end`.
  // REQUIRES: both have blocks of the same length, and `from` is a multiple of it
  static std::shared_ptr<const KvSnapshot> joined(const KvSnapshot& begin, TokenCount from, const KvSnapshot& end);

  const Blocks& blocks() const { return blocks_; }
  // 0: it is in one piece and cannot be divided.
  TokenCount block_tokens() const { return block_tokens_; }
  // Of a block that this snapshot alone has, to be filled.
  std::span<std::byte> writable(std::size_t block) { return const_cast<KvBlock&>(*blocks_[block]).bytes(); }
  // REQUIRES: it is one block
  std::span<std::byte> bytes() { return writable(only_block()); }
  std::span<const std::byte> bytes() const { return blocks_[only_block()]->bytes(); }

  // It holds the positions 0 … tokens()-1.
  TokenCount tokens() const { return tokens_; }
  std::size_t size() const { return size_; }
  // What goes back to the system when the last lease ends, save for blocks that others share.
  std::size_t resident_bytes() const { return size_; }

 private:
  template <class PagesOf>
  static std::shared_ptr<KvSnapshot> make(std::size_t size, TokenCount tokens, TokenCount block_tokens, PagesOf pages);
  std::size_t only_block() const;

  Blocks blocks_;
  TokenCount block_tokens_ = 0;
  TokenCount tokens_ = 0;
  std::size_t size_ = 0;
};
using KvSnapshotPtr = std::shared_ptr<const KvSnapshot>;

}  // namespace chasqui
