// What a worker's prefix cache and cached slots hold that prompts can begin with, for those who tell routers of it.
// A holding is a run of tokens from the beginning of a prompt on, in whole blocks, from hold() to drop(). Made by
// the publisher; owned by the Worker, used on its thread. It costs one copy of the tokens where a snapshot or a
// slot is kept, and nothing for a token that is generated.
//
// Changes are a set, not a history: what begins and ends before the publisher has seen it is left out. So what waits
// for the publisher is never more than what is held, and what it has to forget (bounded).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cache/prefix_key.h"
#include "core/model_identity.h"
#include "core/types.h"

namespace chasqui {

// Tokens of a block, for routers: what vllm:cache_config_info says.
constexpr TokenCount kHeldBlock = 64;

enum class Medium : std::uint8_t {
  memory,  // the context or host memory: a prompt begins with it at once
  disk,    // a file, which is read first
};
constexpr std::size_t kMedia = 2;

struct Holding {
  Medium medium = Medium::memory;
  std::uint64_t adapters = 0;  // AdapterSet::id
  std::vector<Token> tokens;   // whole blocks
};

// Ids are unique in the process.
struct HoldingChanges {
  std::unordered_map<std::uint64_t, Holding> begun;
  std::vector<std::uint64_t> ended;  // each of which an earlier set has begun

  bool empty() const { return begun.empty() && ended.empty(); }
  void end(std::uint64_t id);
  // What came after this. Leaves `later` empty.
  void add(HoldingChanges& later);
};

// Whose holdings are told, by PrefixKey and by LastingKey; those of others are their own.
struct HoldingOwner {
  std::uint32_t tenant = 0;
  std::uint64_t lasting = 0;
};
constexpr HoldingOwner kAllTenants{0, 1};  // where they share

class HoldingLog {
 public:
  // Gets sets of changes, none of them empty, on the worker's thread; must not block.
  using Sink = std::function<void(HoldingChanges&)>;

  // `first_id` is that of the first holding, and more than 0; later ones follow.
  HoldingLog(HoldingOwner owner, std::uint64_t first_id, Sink sink);
  // All ends.
  ~HoldingLog();
  HoldingLog(const HoldingLog&) = delete;
  HoldingLog& operator=(const HoldingLog&) = delete;

  // 0 where there is nothing to tell. Only text counts: of a picture routers do not know the tokens.
  std::uint64_t hold(PrefixKey key, std::span<const Token> tokens);
  // … in a file.
  std::uint64_t hold(LastingKey key, std::span<const Token> tokens);
  // Does nothing for 0.
  void drop(std::uint64_t id);
  // Once a step.
  void flush();

 private:
  std::uint64_t begin(Medium medium, std::uint64_t adapters, std::span<const Token> tokens);

  const HoldingOwner owner_;
  const Sink sink_;
  std::uint64_t next_id_;
  std::unordered_set<std::uint64_t> held_;
  HoldingChanges changes_;  // since the last flush()
};

}  // namespace chasqui
