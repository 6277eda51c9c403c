// Which worker gets a request, and which one has it. Owned by the Dispatcher and used on its thread; pure: no threads,
// no clock, what the workers say about themselves is an argument.
//
//   1. Its pin says so: all requests of one pin (a session) go to the worker that got the first, until unpin().
//   2. Else the worker that is expected to have prefilled the prompt first, in seconds:
//        what is in flight there x how long a sequence holds a slot / slots     its neighbours, and the line before it
//      + where no slot is free, how long one is held, or has been so far        until the line moves
//      + prompt tokens that are unread there x the time of one                  less what this prompt shares with them
//      + tokens of this prompt that were not sent there before x the time of one
//      + for a new pin, those it has more than the worker with fewest x how long a sequence holds a slot / slots
//      So equal prefixes go to one worker until queueing there costs more than computing the prefix elsewhere, and
//      requests that share nothing to the one with least to do. Sessions that begin alike do not all get the same
//      worker for life.
//   3. Of equals the next in turn, so that idle workers fill their caches evenly.
//
// What is in flight is counted here, request by request, and so exact. What the workers say of themselves is as old as
// their last step; what they cannot have heard of yet is added.
//
// Invariant (bounded): there are as many entries as requests in flight, which the Engine bounds, and at most pins_max
// pins.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/load.h"
#include "core/request.h"
#include "engine/sent_prompts.h"

namespace chasqui {

struct PlacementConfig {
  std::size_t workers = 1;
  std::int32_t slots = 1;          // of each worker
  bool shared_by_tenants = false;  // as ReuseConfig: whose prefixes can serve whom
  std::size_t pins_max = 65'536;
  SentPrompts::Limits sent;
};

// What a worker says of itself.
struct WorkerState {
  Load load;
  Duration held{};    // how long those that run have held their slots, on average
  bool alive = true;  // gets no new work while it hangs, unless all do
};

class Placement {
 public:
  enum class Reason : std::uint8_t { pin, prefix, load };
  static constexpr std::size_t kReasons = 3;
  struct Choice {
    std::size_t worker = 0;
    Reason reason = Reason::load;
  };

  // Prefixes of fewer tokens are no reason to go anywhere: all chats begin with the same words of their template.
  static constexpr TokenCount kWorthFollowing = 32;

  explicit Placement(const PlacementConfig& config);

  // The request is in flight from now on. None: it would be one pin too many, and nothing has changed.
  // REQUIRES: it is not in flight, one state for each worker
  std::optional<Choice> place(const Request& request, std::span<const WorkerState> workers);
  // Its finished event has been taken. Unknown requests are ignored.
  void ended(RequestId request);
  // Forgets a pin, also with requests of it in flight.
  void unpin(std::uint64_t pin);
  // The worker has these tokens in its cache, as if it had been sent a prompt of them.
  void brought(std::size_t worker, PrefixKey key, std::span<const Token> tokens) { sent_.add(key, tokens, worker); }

  std::optional<std::size_t> worker_of(RequestId request) const;
  std::vector<RequestId> requests_of(std::size_t worker) const;
  std::size_t in_flight() const { return requests_.size(); }
  std::size_t in_flight(std::size_t worker) const { return shares_[worker].in_flight; }
  std::size_t pins() const { return pins_.size(); }
  std::size_t sent_tokens() const;
  // Recounts everything and compares.
  bool consistent() const;

 private:
  // What one worker has of all.
  struct Share {
    std::size_t in_flight = 0;
    std::size_t pins = 0;
    std::deque<TokenCount> unheard;  // tokens to prefill of the latest, of which the worker may not have heard
  };
  // What a slot and a prompt token cost, in seconds; the same for all workers, since they are made alike.
  struct Costs {
    double slot = 0;
    double row = 0;
  };

  static Costs costs(std::span<const WorkerState> workers);
  double seconds_until_read(std::size_t worker, const Request& request, const WorkerState& state, const Costs& costs);
  std::size_t best(const Request& request, std::span<const WorkerState> workers);
  void assign(const Request& request, std::size_t worker);
  PrefixKey key_of(const Request& request) const {
    return {config_.shared_by_tenants ? 0 : request.tenant.id, id_of(request.adapters.get())};
  }

  const PlacementConfig config_;
  SentPrompts sent_;
  std::vector<Share> shares_;  // one for each worker
  std::unordered_map<RequestId, std::size_t> requests_;
  std::unordered_map<std::uint64_t, std::size_t> pins_;
  std::vector<TokenCount> matched_;  // of the request that is being placed, by worker
  std::size_t turn_ = 0;             // the worker that is asked first
};

}  // namespace chasqui
