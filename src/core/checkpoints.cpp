#include "core/checkpoints.h"

#include <algorithm>

namespace chasqui {
namespace {

// Two that are closer serve about the same prompts.
constexpr TokenCount kApart = 8;
// A boundary so close to the end serves who asks the same again, too.
constexpr TokenCount kCloseToEnd = 8;
constexpr TokenCount kTokensOfEach = 64;

}  // namespace

std::vector<TokenCount> plan_checkpoints(std::span<const TokenCount> boundaries, TokenCount prompt, TokenCount every,
                                         TokenCount least, std::size_t most) {
  std::vector<TokenCount> wanted(boundaries.begin(), boundaries.end());
  std::erase_if(wanted, [prompt](TokenCount at) { return at < kCheckpointLeast || at >= prompt; });
  std::ranges::sort(wanted);
  if (prompt - 1 >= kCheckpointLeast && (wanted.empty() || wanted.back() < prompt - kCloseToEnd)) {
    wanted.push_back(prompt - 1);
  }
  std::vector<TokenCount> out;
  TokenCount last = 0;
  for (const TokenCount at : wanted) {
    for (TokenCount more = last + every; more + every / 2 <= at; more += every) out.push_back(more);
    const bool end = at == wanted.back();
    const bool close = !out.empty() && at - out.back() < std::max(kApart, least);
    if (close && end) out.pop_back();
    if (!close || end) out.push_back(at);
    last = out.back();
  }
  // The last one is worth most, then the first: the end of what many prompts have in common.
  std::size_t worth = static_cast<std::size_t>(std::max(1, prompt / kTokensOfEach));
  if (most > 0) worth = std::min(worth, most);
  while (out.size() > worth) out.erase(out.size() > 2 ? out.begin() + 1 : out.begin());
  return out;
}

std::vector<TokenCount> fixed_chunks(TokenCount prompt) {
  std::vector<TokenCount> ends;
  for (TokenCount end = kFixedChunk; end < prompt; end += kFixedChunk) ends.push_back(end);
  return ends;
}

}  // namespace chasqui
