#include "sim/conversations.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/checked_model.h"

namespace chasqui {

bool Conversations::begin(PlannedRequest& plan) {
  Talk& talk = talks_[plan.conversation];
  if (talk.answering) return talk.waiting.push_back(plan), false;
  talk.answering = true;
  const std::size_t back = std::min(static_cast<std::size_t>(plan.back), talk.lengths.size());
  std::size_t kept = talk.said.size();
  if (back > 0) kept = static_cast<std::size_t>(talk.lengths[talk.lengths.size() - back]);
  talk.lengths.resize(talk.lengths.size() - back);
  const TokenCount answer = plan.max_tokens >= 0 ? plan.max_tokens : plan.output;
  // The common prefix is said once.
  const TokenCount adds = kept > 0 ? std::max(1, plan.prompt - plan.prefix_tokens) : plan.prompt;
  const bool full = static_cast<TokenCount>(kept) + adds + answer > context_;
  if (full || (turns_max_ > 0 && talk.lengths.size() == static_cast<std::size_t>(turns_max_))) {
    kept = 0;
    talk.lengths.clear();
  }
  talk.said.resize(kept);
  talk.lengths.push_back(static_cast<TokenCount>(kept));
  plan.history = static_cast<TokenCount>(kept);
  talk.has_tools = talk.has_tools || plan.calls;
  plan.has_tools = talk.has_tools;
  if (kept == 0) return true;
  plan.prompt = plan.history + adds;
  plan.prefix = 0;
  plan.prefix_tokens = 0;
  return true;
}

std::span<const Token> Conversations::history(const PlannedRequest& plan) const {
  if (plan.history == 0) return {};
  return std::span(talks_.at(plan.conversation).said).first(static_cast<std::size_t>(plan.history));
}

bool Conversations::ended(const SimRequest& life) {
  Talk& talk = talks_.at(life.plan.conversation);
  talk.answering = false;
  if (life.request == nullptr) {
    talk.lengths.pop_back();  // it was never said
  } else {
    talk.said = life.request->prompt;
    append_answer(life, talk.said);
  }
  return !talk.waiting.empty();
}

PlannedRequest Conversations::next(std::uint32_t conversation) {
  std::deque<PlannedRequest>& waiting = talks_.at(conversation).waiting;
  PlannedRequest plan = std::move(waiting.front());
  waiting.pop_front();
  return plan;
}

}  // namespace chasqui
