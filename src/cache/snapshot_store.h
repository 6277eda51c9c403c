// What is in a folder of snapshots, and what goes when it is full: the bookkeeping, without a file being touched. What
// is to be removed comes out of take_removals(), and is removed before anything is written. Owned by the DiskTier;
// worker thread only. Invariant: bytes ≤ limits.bytes and files ≤ limits.files once the removals are done, whatever the
// files are; those of other models and settings only take room, and go like all others in the order of last use.
//
// Snapshots that nodes share are found in an index of their own, and take no room: whether the folder has a file of
// the same tokens has nothing to do with them.
//
// Workers share a folder. A number begins with the worker that gave it; at the start each file has one owner, whose
// room it takes and who alone has it make room, whatever the number of workers was before. The others read it all the
// same, and find it missing when it has gone.
//
// The same as in the prefix cache: where KV can be cut anywhere, a file serves every prefix of its tokens, and one from
// whose end exactly one way leads on is redundant. It goes when the longer one is there, and not before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "cache/disk_order.h"
#include "cache/radix_tree.h"
#include "cache/snapshot_folder.h"
#include "core/model_identity.h"
#include "core/types.h"

namespace chasqui {

class HoldingLog;

class SnapshotStore {
 public:
  struct Limits {
    std::uint64_t bytes = 0;
    std::size_t files = 65'536;  // bounds the index of the folder
    bool cut_anywhere = true;    // false: a file is good for exactly its tokens and what follows them
    std::uint32_t worker = 0;    // whose files are made, of so many
    std::uint32_t workers = 1;
    HoldingLog* holdings = nullptr;  // is told of its own files; outlives the store; null: nothing is
  };

  struct Match {
    TokenCount length = 0;  // 0: nothing
    std::uint64_t file = 0;
    TokenCount tokens = 0;  // of the file
    std::uint64_t kv_bytes = 0;
  };

  struct Stats {
    std::size_t files = 0;    // that are there and its own, as all of these are
    std::size_t foreign = 0;  // … of which are of other models and settings
    std::size_t shared = 0;   // of all nodes
    std::uint64_t bytes = 0;  // what is being written included
    std::uint64_t evictions = 0;
  };

  explicit SnapshotStore(const Limits& limits);

  // It was there at the start, least recently used first; or nodes share it, and then it may be known already.
  void found(FoundSnapshot file);

  // The longest prefix of the tokens, at most `most` of them, that is in a file of the folder.
  Match match(LastingKey key, std::span<const Token> tokens, TokenCount most) const {
    return match_in(shelves_, key, tokens, most);
  }
  // … that is in a file that nodes share.
  Match match_shared(LastingKey key, std::span<const Token> tokens, TokenCount most) const {
    return match_in(shared_shelves_, key, tokens, most);
  }
  // A new file of these tokens would be redundant in the folder.
  bool covers(LastingKey key, std::span<const Token> tokens) const;
  // It was used just now.
  void touch(std::uint64_t file);
  // It is being read, and stays until release().
  void hold(std::uint64_t file);
  void release(std::uint64_t file);

  // Room for a new file, and its number; nothing when it would be redundant, or there is no room for it.
  // REQUIRES: there are tokens
  std::optional<std::uint64_t> begin_write(LastingKey key, std::span<const Token> tokens, std::uint64_t kv_bytes);
  // It is there, and can be found.
  void written(std::uint64_t file);
  // It could not be written or read, or is not needed any more. It goes, of any owner.
  void forget(std::uint64_t file);

  // Files of this tenant that can be found or are being written, ascending. Looks at all there are.
  std::vector<std::uint64_t> files_of(std::uint64_t tenant) const;

  // Moves the numbers of files to remove to the end of `files`.
  void take_removals(std::vector<std::uint64_t>& files);

  // This file is being written, and these are its tokens.
  bool writes(std::uint64_t file, LastingKey key, std::span<const Token> tokens) const;
  bool contains(std::uint64_t file) const { return entries_.contains(file); }
  Stats stats() const;
  bool consistent() const;

 private:
  using Shelves = std::map<LastingKey, RadixTree>;  // none is empty
  enum class State { foreign, writing, there };

  struct Entry {
    State state = State::there;
    bool own = true;
    LastingKey key;
    std::vector<Token> tokens;  // only while it is being written; then the tree has them
    TokenCount length = 0;
    std::uint64_t bytes = 0;  // of the whole file
    std::uint64_t used = 0;   // key of order_
    int holds = 0;
    std::uint64_t holding = 0;  // of HoldingLog
  };

  Shelves& shelves_of(std::uint64_t file) { return is_shared_file(file) ? shared_shelves_ : shelves_; }
  Match match_in(const Shelves& shelves, LastingKey key, std::span<const Token> tokens, TokenCount most) const;
  std::pair<TokenCount, EntryId> usable(const RadixTree::Match& found) const;
  bool may_go(const Entry& entry) const { return entry.own && entry.state != State::writing && entry.holds == 0; }
  static std::uint64_t room_of(const Entry& entry) { return entry.own ? entry.bytes : 0; }
  bool over(std::uint64_t bytes, std::size_t files) const { return bytes > limits_.bytes || files > limits_.files; }
  std::size_t in_folder() const { return entries_.size() - shared_; }
  bool make_room(std::uint64_t bytes, std::size_t files);
  void add(std::uint64_t file, Entry entry);
  void absorb_redundant(RadixTree& tree, EntryId by);
  void remove(std::uint64_t file);

  const Limits limits_;
  Shelves shelves_;                               // of files in the folder
  Shelves shared_shelves_;                        // of files that nodes share
  std::map<std::uint64_t, Entry> entries_;        // by number
  std::map<std::uint64_t, std::uint64_t> order_;  // least recently used first; of files in the folder
  std::vector<std::uint64_t> removals_;
  std::uint64_t bytes_ = 0;
  std::size_t foreign_ = 0;
  std::size_t writing_ = 0;
  std::size_t others_ = 0;  // that are not its own, shared ones included
  std::size_t shared_ = 0;
  std::size_t shared_tokens_ = 0;
  std::uint64_t last_used_ = 0;
  std::uint64_t last_file_;
  std::uint64_t evictions_ = 0;
};

}  // namespace chasqui
