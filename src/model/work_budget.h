// How long the parts of llama.cpp that work on what clients send may compute: templates, the converter of JSON schemas,
// grammars, the parser of answers. None of them has a limit, and what a template does with a conversation is its
// author's business: of those that llama.cpp brings along one looks back over all messages from each of them, twenty
// seconds for a thousand. While a budget exists, what its thread computes there is ended with an exception when the
// time is used up, which is computing time of the thread, so that a busy machine makes no job exceed it; and so it is
// when it has gone so deep into itself that the stack of its thread could end (a schema that leads back to itself
// within allOf). On the stack, any thread; the tightest of several counts.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace chasqui {

class WorkBudget {
 public:
  enum class Work : std::uint8_t { text_template, schema, grammar, answer };

  explicit WorkBudget(Duration most);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  bool is_used_up() const { return used_up_; }
  // … by depth, not by time.
  bool is_too_deep() const { return too_deep_; }
  // Whether its time is over, by the clock: for work between what counts its steps, which has used none of this one's.
  bool is_over() const;
  // What used the rest of it. REQUIRES: is_used_up()
  Work last_work() const { return last_work_; }

  // For what works: so many steps of about 10 ns were made. Throws std::runtime_error.
  void count(Work work, std::uint32_t steps);
  // … a text was split once more.
  void count_piece();
  // … a part of an answer was looked for.
  void count_answer_step();
  // … so many bytes were written of the grammar of a schema.
  void count_text(std::size_t bytes);

 private:
  WorkBudget* const outer_;
  const char* const begun_at_;  // on the stack
  const Duration end_;          // of the thread's time
  std::uint32_t steps_ = 0;
  std::size_t text_ = 0;
  std::size_t pieces_ = 0;
  std::size_t answer_steps_ = 0;
  Work last_work_ = Work::text_template;
  bool used_up_ = false;
  bool too_deep_ = false;

  [[noreturn]] void grow_too_large(Work work);
};

}  // namespace chasqui
