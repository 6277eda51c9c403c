// Snapshots for tests of the scheduler: the tokens of a slot, and whose they are. In blocks, each token says whose it
// is.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/kv_snapshot.h"
#include "core/types.h"

namespace chasqui {

struct FakeOwner {
  RequestId owner;
  std::uint32_t tenant = 0;
  std::uint64_t adapters = 0;
};
struct FakeToken {
  FakeOwner by;
  Token token = 0;
};

inline KvSnapshotPtr fake_whole(const FakeOwner& by, std::span<const Token> tokens, std::size_t bytes_per_token) {
  const std::size_t size = std::max(sizeof by + tokens.size_bytes(), tokens.size() * bytes_per_token);
  const auto copy = std::make_shared<KvSnapshot>(size, static_cast<TokenCount>(tokens.size()));
  std::memset(copy->bytes().data(), 0, size);
  std::memcpy(copy->bytes().data(), &by, sizeof by);
  std::memcpy(copy->bytes().data() + sizeof by, tokens.data(), tokens.size_bytes());
  return copy;
}

inline KvSnapshotPtr fake_blocks(const FakeOwner& by, std::span<const Token> tokens, TokenCount block,
                                 std::size_t bytes_per_token) {
  const std::size_t each = std::max(sizeof(FakeToken), bytes_per_token);
  const auto copy = KvSnapshot::with_room(each * tokens.size(), static_cast<TokenCount>(tokens.size()), block);
  std::size_t next = 0;
  for (std::size_t i = 0; i < copy->blocks().size(); ++i) {
    const std::span<std::byte> bytes = copy->writable(i);
    std::memset(bytes.data(), 0, bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += each, ++next) {
      const FakeToken saved{by, tokens[next]};
      std::memcpy(&bytes[at], &saved, sizeof saved);
    }
  }
  return copy;
}

// Whose the first token is, and the first `keep` tokens; another token where a block is not of the same tenant (unless
// they share) and adapters.
inline std::pair<FakeOwner, std::vector<Token>> fake_content(const KvSnapshot& snapshot, TokenCount keep,
                                                             bool any_tenant = false) {
  std::pair<FakeOwner, std::vector<Token>> out;
  const TokenCount block_tokens = snapshot.block_tokens();
  if (block_tokens == 0) {
    const std::span<const std::byte> bytes = snapshot.bytes();
    out.second.resize(static_cast<std::size_t>(keep));
    std::memcpy(&out.first, bytes.data(), sizeof out.first);
    std::memcpy(out.second.data(), &bytes[sizeof out.first], out.second.size() * sizeof(Token));
    return out;
  }
  const std::size_t each = snapshot.size() / static_cast<std::size_t>(snapshot.tokens());
  for (TokenCount i = 0; i < keep; ++i) {
    const KvBlock& block = *snapshot.blocks()[static_cast<std::size_t>(i / block_tokens)];
    FakeToken saved;
    std::memcpy(&saved, &block.bytes()[static_cast<std::size_t>(i % block_tokens) * each], sizeof saved);
    if (i == 0) out.first = saved.by;
    const bool same = (any_tenant || saved.by.tenant == out.first.tenant) && saved.by.adapters == out.first.adapters;
    out.second.push_back(same ? saved.token : -1);
  }
  return out;
}

}  // namespace chasqui
