#include "sched/drafts.h"

#include <algorithm>

#include "sched/scheduler_tap.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// kHope is expected of a draft model again after so many sequences without draft tokens: when draft tokens are never
// accepted, a few are checked in one of so many requests.
constexpr int kForgottenAfter = 16;

}  // namespace

Drafts::Drafts(const SpeculationConfig& config) : config_(config), all_(config.draft_model ? kHope : kUnknown) {}

Drafts::Draft& Drafts::of(const Sequence& sequence) {
  const auto known = sequences_.find(sequence.id());
  if (known != sequences_.end()) return known->second;
  if (config_.draft_model && ++unasked_ > kForgottenAfter) {
    all_ = Acceptance(kHope);
    unasked_ = 0;
  }
  Draft fresh{NgramIndex(config_.ngram), Acceptance(all_.chance()), {}};
  return sequences_.try_emplace(sequence.id(), std::move(fresh)).first->second;
}

TokenCount Drafts::most(const Sequence& sequence, TokenCount cells) const {
  const Request& request = sequence.request();
  const TokenCount wanted = request.draft_tokens_max < 0 ? config_.draft_tokens_max : request.draft_tokens_max;
  const TokenCount room = cells - sequence.length();
  // Its context is shifted at the same token as without them.
  const TokenCount shift = request.shift_at > 0 ? request.shift_at - sequence.length() - 1 : room;
  const TokenCount answer = request.max_tokens - sequence.generated() - 1;
  return std::clamp(std::min({wanted, config_.draft_tokens_max, room, shift, answer}), 0, kMost);
}

void Drafts::collect(std::span<const Sequence* const> decoding, TokenCount cells) {
  turns_.clear();
  for (const Sequence* sequence : decoding) {
    Draft& draft = of(*sequence);
    draft.checked = 0;
    draft.tokens.clear();
    const TokenCount most = sequence->left() > 1 ? 0 : this->most(*sequence, cells);
    if (most == 0) continue;
    if (config_.draft_model) {
      draft.tokens.assign(static_cast<std::size_t>(most), 0);
    } else {
      draft.index.follow(*sequence);
      draft.index.draft(*sequence, most, draft.tokens);
      if (config_.always) {
        draft.tokens.resize(static_cast<std::size_t>(most), sequence->token(sequence->length() - 1));
      }
      if (config_.tap != nullptr) config_.tap->drafted(*sequence, draft.tokens);
    }
    if (!draft.tokens.empty()) turns_.push_back({sequence, &draft});
  }
}

TokenCount Drafts::count(TokenCount each) const {
  TokenCount all = 0;
  for (const Turn& turn : turns_) all += turn.draft->most(each);
  return all;
}

double Drafts::tokens(TokenCount sequences, TokenCount each) const {
  double all = sequences;
  for (const Turn& turn : turns_) all += turn.draft->acceptance.expected(turn.draft->most(each));
  return all;
}

std::span<const Token> Drafts::checked(RequestId id) const {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return {};
  return std::span(found->second.tokens).first(static_cast<std::size_t>(found->second.checked));
}

void Drafts::commit(const Sequence& sequence, TokenCount checked, TokenCount said) {
  if (checked > 0) unasked_ = 0;
  const auto found = sequences_.find(sequence.id());
  if (found == sequences_.end()) return;
  Draft& draft = found->second;
  TokenCount known = checked;
  TokenCount accepted = std::min(checked, said - 1);
  if (!config_.draft_model && !config_.always) {
    known = draft.most(said);
    const auto newest = sequence.generated_tokens().end() - said;
    const auto wrong = std::mismatch(draft.tokens.begin(), draft.tokens.begin() + known, newest).first;
    accepted = static_cast<TokenCount>(wrong - draft.tokens.begin());
  }
  draft.tokens.clear();
  draft.checked = 0;
  if (known == 0) return;
  draft.acceptance.observe(accepted, accepted < known);
  all_.observe(accepted, accepted < known);
}

void Drafts::shifted(RequestId id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) found->second.index = NgramIndex(config_.ngram);
}

}  // namespace chasqui
