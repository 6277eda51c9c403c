// What the clients of a simulation want: one planned request after the other, drawn from a seed (drawn_workload) or
// read from a trace (trace). Read by the simulation on its thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

// When a client goes away before its answer is complete.
enum class Leaving : std::uint8_t {
  never,
  after_ms,      // … of its first try
  after_rows,    // rows of its prompt are computed
  after_tokens,  // tokens have reached it
};

struct PlannedRequest {
  static constexpr std::int32_t kAdaptersMax = 8;

  Duration at{};  // of the first try, since the start; with a fixed number of clients it does not matter
  TokenCount prompt = 1;
  TokenCount output = 1;       // tokens until the model ends its answer
  TokenCount max_tokens = -1;  // -1: `output`, so that the answer ends by its length
  ServiceClass service_class = ServiceClass::standard;
  std::uint32_t tenant = 0;  // an index of Workload::tenants()
  double weight = 1;
  std::uint32_t prefix = 0;  // an index of Workload::prefixes(); the first one stands for none
  TokenCount prefix_tokens = 0;
  Leaving leaving = Leaving::never;
  std::int64_t leaves_after = 0;
  std::int64_t timeout_ms = 0;  // 0: none
  double reads_per_s = 0;       // tokens that the client takes in a second; 0: at once
  double repeats = 0;           // share of the tokens of the answer that say the prompt again
  std::int32_t adapter = 0;     // 0: the model alone; else one of kAdaptersMax sets

  // A turn of a conversation: it comes when the answer before it has ended, and `prompt` is what it adds.
  std::uint32_t conversation = 0;  // an index of Workload::conversations(); the first one stands for none
  std::int32_t back = 0;           // it leaves out so many of the latest turns
  bool calls = false;              // its answer calls a tool
  Duration think{};                // from the end of the answer before it
  // … filled in when it comes, as `prompt` then is the whole prompt
  TokenCount history = 0;     // tokens of its prompt that were said before
  bool has_tools = false;     // its client is an agent: answers call tools
};

class Workload {
 public:
  virtual ~Workload() = default;
  // False when there are no more.
  virtual bool next(PlannedRequest& request) = 0;

  // With a fixed number of clients: makes it a request of this one, who always is the same tenant.
  virtual void give_to(PlannedRequest& /*request*/, std::uint32_t /*client*/, std::uint32_t /*clients*/) const {}

  const std::vector<std::string>& tenants() const { return tenants_; }
  const std::vector<std::string>& prefixes() const { return prefixes_; }
  const std::vector<std::string>& conversations() const { return conversations_; }

 protected:
  std::vector<std::string> tenants_;
  std::vector<std::string> prefixes_ = {""};
  std::vector<std::string> conversations_ = {""};
};

}  // namespace chasqui
