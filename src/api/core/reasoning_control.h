// Ends the reasoning of an answer while it runs: POST /v1/chat/completions/control with the id of an answer whose
// request said `reasoning_control`, as llama-server has it. ReasoningSwitches knows those answers, by id, for their own
// tenants. Loop thread; only ReasoningSwitch::end crosses over to the worker that samples.
//
// bounded: one entry for each answer that is running; those that have ended are forgotten as others come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/flag.h"

namespace chasqui {

struct ReasoningSwitch {
  std::string id;  // of the answer, "chatcmpl-…"
  std::uint32_t tenant = 0;
  Flag end;
};
using ReasoningSwitchPtr = std::shared_ptr<ReasoningSwitch>;

class ReasoningSwitches {
 public:
  void add(const ReasoningSwitchPtr& one);
  // Null when there is none, it has ended, or it is another tenant's.
  ReasoningSwitchPtr find(std::uint32_t tenant, const std::string& id) const;
  std::size_t size() const { return by_id_.size(); }

 private:
  std::unordered_map<std::string, std::weak_ptr<ReasoningSwitch>> by_id_;
  std::size_t clean_at_ = 64;
};

}  // namespace chasqui
