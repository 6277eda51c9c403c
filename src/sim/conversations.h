// The conversations of a simulation: what was said in each so far, and the turns of each that wait for the answer
// before them. A turn's prompt begins with what its client keeps of that, as an agent sends all of it with each call.
// Owned by the simulation; one thread.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/sim_request.h"

namespace chasqui {

class Conversations {
 public:
  // Where a turn does not fit into so many cells any more, and after so many turns (0: any number), a conversation
  // begins anew.
  Conversations(TokenCount context, std::int32_t turns_max) : context_(context), turns_max_(turns_max) {}

  // Makes `plan` the next turn: its prompt grows by what was said before. False: the answer before it has not ended;
  // `plan` is kept until then. REQUIRES: plan.conversation != 0
  bool begin(PlannedRequest& plan);
  // What the prompt of this turn begins with; valid until it ends.
  std::span<const Token> history(const PlannedRequest& plan) const;
  // A turn has ended, whatever came of it. True: another one waits, to be taken with next().
  bool ended(const SimRequest& life);
  const PlannedRequest& waiting(std::uint32_t conversation) const { return talks_.at(conversation).waiting.front(); }
  PlannedRequest next(std::uint32_t conversation);

 private:
  struct Talk {
    std::vector<Token> said;          // prompts and answers
    std::vector<TokenCount> lengths;  // … before each turn
    bool answering = false;
    bool has_tools = false;
    std::deque<PlannedRequest> waiting;
  };

  const TokenCount context_;
  const std::int32_t turns_max_;
  std::unordered_map<std::uint32_t, Talk> talks_;
};

}  // namespace chasqui
