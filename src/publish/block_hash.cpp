#include "publish/block_hash.h"

#include <algorithm>

namespace chasqui::publish {

BlockHash BlockHasher::operator()(BlockHash parent, std::uint64_t adapters, std::span<const Token> tokens) const {
  SipHash hash(secret_);
  hash.add(parent);
  hash.add(adapters);
  for (std::size_t i = 0; i < tokens.size(); i += 2) {
    const std::uint64_t after = i + 1 < tokens.size() ? static_cast<std::uint32_t>(tokens[i + 1]) : 0;
    hash.add(static_cast<std::uint32_t>(tokens[i]) | after << 32);
  }
  return std::max<BlockHash>(hash.result() & mask_, 1);
}

}  // namespace chasqui::publish
