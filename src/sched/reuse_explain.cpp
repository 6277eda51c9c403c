// The part of Reuse that says what it has decided, for those who wonder why a prompt was computed again.
#include <algorithm>

#include "sched/reuse.h"

namespace chasqui {

CacheUse Reuse::explain(const Sequence& waiting, const Prefix& prefix) {
  const Request& request = waiting.request();
  CacheUse use;
  if (!uses_cache(request)) return use;
  const std::span<const Token> tokens = tokens_of(waiting);
  const TokenCount most = waiting.length() - 1;
  const PrefixCache::Match& used = prefix.match;
  const TokenCount in_slot = slots_.match(key_of(request), tokens, most).second;
  const TokenCount there = std::max(cache_.match(key_of(request), tokens, most).length, in_slot);
  use.known = std::max({cache_.known(key_of(request), tokens, most), in_slot, used.length});
  if (used.length > 0 && prefix.slot.valid()) {
    use.source = CacheUse::Source::slot;
    use.entry = slots_.find(prefix.slot)->length();
  } else if (used.length > 0) {
    use.source = !config_.cache.cut_anywhere ? CacheUse::Source::checkpoint : CacheUse::Source::memory;
    if (has_read_.contains(waiting.id())) use.source = CacheUse::Source::disk;
    use.entry = used.snapshot->tokens();
  }
  const TokenCount usable = request.usable(there);
  if (used.length == most) {
    use.limit = CacheUse::Limit::whole_prompt;
  } else if (used.length < usable) {
    use.limit = CacheUse::Limit::slower;
  } else if (usable < there) {
    use.limit = CacheUse::Limit::whole_chunks;
  } else {
    use.limit = there < use.known ? CacheUse::Limit::no_checkpoint : CacheUse::Limit::differs;
  }
  return use;
}

}  // namespace chasqui
