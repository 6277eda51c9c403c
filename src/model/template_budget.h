// How long a chat template may compute. The interpreter of llama-common has no limit, and what a template does with a
// conversation is its author's business: of those that llama.cpp brings along one looks back over all messages from
// each of them, twenty seconds for a thousand. While a budget exists, templates that its thread renders are ended with
// an exception when the time is used up, which is computing time of the thread: a busy machine makes nobody exceed it.
// On the stack, any thread; the tightest of several counts.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace chasqui {

class TemplateBudget {
 public:
  explicit TemplateBudget(Duration most);
  ~TemplateBudget();
  TemplateBudget(const TemplateBudget&) = delete;
  TemplateBudget& operator=(const TemplateBudget&) = delete;

  bool is_used_up() const { return used_up_; }

  // For the interpreter. Throws std::runtime_error.
  void count();

 private:
  TemplateBudget* const outer_;
  const Duration end_;  // of the thread's time
  std::uint32_t steps_ = 0;
  bool used_up_ = false;
};

}  // namespace chasqui
