// The KV of one sequence, copied out of its slot into host memory: immutable, and good for any slot of the same model
// and adapter. A copy of the pointer is a lease: whoever holds one may read the bytes, and they stay. Made by the
// Model, kept by the PrefixCache; worker thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/pages.h"
#include "core/types.h"

namespace chasqui {

class KvSnapshot {
 public:
  // Room for `size` bytes, not cleared: whoever makes a snapshot fills all of it.
  KvSnapshot(std::size_t size, TokenCount tokens) : pages_(size), tokens_(tokens) {}

  std::span<std::byte> bytes() { return pages_.bytes(); }
  std::span<const std::byte> bytes() const { return pages_.bytes(); }
  // It holds the positions 0 … tokens()-1.
  TokenCount tokens() const { return tokens_; }
  // What goes back to the system when the last lease ends.
  std::size_t resident_bytes() const { return pages_.bytes().size(); }

 private:
  Pages pages_;
  TokenCount tokens_;
};
using KvSnapshotPtr = std::shared_ptr<const KvSnapshot>;

}  // namespace chasqui
