// A request as a scheduler sees it. Its prompt and what its answer begins with are stand-ins, and of texts, sampling,
// grammars and keys there is nothing but the seed and whether there is a grammar. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/request.h"
#include "record/byte_stream.h"
#include "sched/scheduler.h"

namespace chasqui {

// The parts of a request that decide what is planned, but for its prompt and its adapters.
template <class Io, class AnyRequest, class AnyTenant, class Group>
void pass_request(Io& io, AnyRequest& request, AnyTenant& tenant, Group& group) {
  io(request.id, request.max_tokens, request.limited_by_context, request.arrival, request.deadline,
     request.prompt_deadline, request.start_deadline, request.first_token_deadline, request.predict_limit,
     request.ttft_target, request.tpot_target, request.draft_tokens_max, request.tell_usage, request.returns,
     request.tell_cache, request.tell_progress, request.tell_prompt);
  io.choice(request.service_class, kServiceClasses);
  io(tenant.id, tenant.weight, tenant.lasting, group, request.use_cache, request.checkpoints, request.slot_label,
     request.pin, request.keep_tokens, request.traced, request.shift_at, request.keep, request.discard, request.chunk,
     request.deterministic);
}

// … and these: a null set is one without an id.
template <class Io, class Set>
void pass_adapters(Io& io, Set& set) {
  io(set.id, set.alone, set.named_in_full);
  std::uint64_t count = set.uses.size();
  io(count);
  if constexpr (std::is_const_v<Set>) {
    for (const AdapterUse& use : set.uses) {
      const auto scale = static_cast<double>(use.scale);
      io(use.adapter, scale, use.version);
    }
  } else {
    for (; count > 0 && !io.failed(); --count) {
      AdapterUse& use = set.uses.emplace_back();
      double scale = 0;
      io(use.adapter, scale, use.version);
      use.scale = static_cast<float>(scale);
    }
  }
}

// `prompt` and `begun` are the stand-ins for its own; `tenant` and `group` are whose it is said to be.
void write_request(ByteWriter& io, const Request& request, const std::vector<Token>& prompt,
                   const std::vector<Token>& begun, const Tenant& tenant, std::uint32_t group);
// With what a scheduler made so can take; else an error that says why not.
Result<RequestPtr> read_request(ByteReader& io, const KvLedger::Layout& kv);

}  // namespace chasqui
