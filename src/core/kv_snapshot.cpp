#include "core/kv_snapshot.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

namespace chasqui {

KvSnapshot::KvSnapshot(std::size_t size, TokenCount tokens) : KvSnapshot(std::make_shared<KvBlock>(size, tokens)) {}

KvSnapshot::KvSnapshot(KvBlockPtr block) : tokens_(block->tokens()), size_(block->size()) {
  blocks_.push_back(std::move(block));
}

KvSnapshot::KvSnapshot(Blocks blocks, TokenCount block_tokens)
    : blocks_(std::move(blocks)), block_tokens_(block_tokens) {
  CHECK(block_tokens_ > 0 && !blocks_.empty());
  for (const KvBlockPtr& block : blocks_) {
    CHECK(block->tokens() == block_tokens_ || (block == blocks_.back() && block->tokens() < block_tokens_));
    tokens_ += block->tokens();
    size_ += block->size();
  }
}

template <class PagesOf>
std::shared_ptr<KvSnapshot> KvSnapshot::make(std::size_t size, TokenCount tokens, TokenCount block_tokens,
                                             PagesOf pages) {
  if (block_tokens == 0) {
    auto found = pages(size);
    return found ? std::make_shared<KvSnapshot>(std::make_shared<KvBlock>(*std::move(found), tokens)) : nullptr;
  }
  if (tokens <= 0 || size % static_cast<std::size_t>(tokens) != 0) return nullptr;
  const std::size_t each = size / static_cast<std::size_t>(tokens);
  Blocks blocks;
  for (TokenCount from = 0; from < tokens; from += block_tokens) {
    const TokenCount count = std::min(block_tokens, tokens - from);
    auto found = pages(each * static_cast<std::size_t>(count));
    if (!found) return nullptr;
    blocks.push_back(std::make_shared<KvBlock>(*std::move(found), count));
  }
  return std::make_shared<KvSnapshot>(std::move(blocks), block_tokens);
}

std::shared_ptr<KvSnapshot> KvSnapshot::with_room(std::size_t size, TokenCount tokens, TokenCount block_tokens) {
  return make(size, tokens, block_tokens, &Pages::if_there_are);
}

std::shared_ptr<KvSnapshot> KvSnapshot::hollow(std::size_t size, TokenCount tokens, TokenCount block_tokens) {
  return make(size, tokens, block_tokens, [](std::size_t bytes) { return std::optional(Pages::hollow(bytes)); });
}

KvSnapshotPtr KvSnapshot::joined(const KvSnapshot& begin, TokenCount from, const KvSnapshot& end) {
  CHECK(begin.block_tokens_ > 0 && begin.block_tokens_ == end.block_tokens_ && from % begin.block_tokens_ == 0);
  CHECK(from <= begin.tokens_);
  Blocks blocks(begin.blocks_.begin(), begin.blocks_.begin() + from / begin.block_tokens_);
  blocks.insert(blocks.end(), end.blocks_.begin(), end.blocks_.end());
  return std::make_shared<KvSnapshot>(std::move(blocks), begin.block_tokens_);
}

std::size_t KvSnapshot::only_block() const {
  CHECK(blocks_.size() == 1, "the bytes of a snapshot that is in several blocks");
  return 0;
}

}  // namespace chasqui
