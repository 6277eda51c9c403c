// Which blocks of 64 tokens a node holds of one model, in which medium, for how many holdings, and what of that routers
// have not been told yet. A block is named by its BlockHash. Owned by a KvChannel; pure; the publisher's thread.
// Invariants: with a block all blocks before it are held; a hash stands for one block.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/holding_log.h"
#include "core/types.h"
#include "publish/block_hash.h"

namespace chasqui::publish {

using AdapterNames = std::map<std::uint64_t, std::string>;

// Blocks of one medium that follow each other.
struct StoredRun {
  BlockHash parent = 0;  // of the first; 0: it begins a prompt
  Medium medium = Medium::memory;
  std::string adapter;  // empty: the model
  std::vector<BlockHash> hashes;
  std::vector<Token> tokens;
};
struct RemovedBlocks {
  Medium medium = Medium::memory;
  std::vector<BlockHash> hashes;
};
// A block is stored after the one before it.
struct BlockChanges {
  std::vector<StoredRun> stored;
  std::vector<RemovedBlocks> removed;

  bool empty() const { return stored.empty() && removed.empty(); }
};

class HeldBlocks {
 public:
  static constexpr std::size_t kRun = 64;  // blocks of a run, at most

  explicit HeldBlocks(const BlockHasher& hash) : hash_(hash) {}

  // What requests are computed with that routers can name, by AdapterSet::id; an empty name is the model's own. All
  // else is not told. True: what was told is wrong now, and all is to be told again.
  bool name(AdapterNames names);
  void apply(const HoldingChanges& changes);
  // What differs from what was told before.
  BlockChanges take_changes();
  // Everything that was told.
  BlockChanges all() const;

  // Told in one medium or more.
  std::size_t size() const { return told_; }
  bool consistent() const;

 private:
  struct Block {
    BlockHash parent = 0;
    std::uint64_t adapters = 0;
    std::array<Token, kHeldBlock> tokens{};
    std::array<std::uint32_t, kMedia> holders{};
    std::array<bool, kMedia> told{};
  };
  struct Held {
    BlockHash last = 0;
    Medium medium = Medium::memory;
  };
  struct Touched {
    BlockHash hash = 0;
    Medium medium = Medium::memory;
  };

  void begin(std::uint64_t id, const Holding& holding);
  void end(std::uint64_t id);
  void add_stored(BlockHash hash, const Block& block, Medium medium, std::vector<StoredRun>& out) const;
  void touch_all();

  const BlockHasher hash_;
  AdapterNames names_{{0, ""}};
  std::unordered_map<BlockHash, Block> blocks_;
  std::unordered_map<std::uint64_t, Held> holdings_;
  std::size_t told_ = 0;
  std::vector<Touched> touched_;  // whose holders began or ended, in that order
};

}  // namespace chasqui::publish
