#include "model/template_budget.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/thread_time.h"

namespace chasqui {

// In third_party/jinja/counted_runtime.cpp, which calls count_template_step().
void count_template_step();
extern const bool template_steps_count;

namespace {

constexpr std::uint32_t kStepsBetweenLooks = 64;  // a step takes about as long as reading the clock

thread_local TemplateBudget* budget_of_thread = nullptr;

}  // namespace

TemplateBudget::TemplateBudget(Duration most)
    : outer_(budget_of_thread),
      end_(outer_ == nullptr ? thread_time() + most : std::min(outer_->end_, thread_time() + most)) {
  CHECK(template_steps_count);
  budget_of_thread = this;
}

TemplateBudget::~TemplateBudget() { budget_of_thread = outer_; }

// Once used up it stays so: llama-common may try a template again in another way.
void TemplateBudget::count() {
  if (!used_up_ && ++steps_ % kStepsBetweenLooks != 0) return;
  used_up_ = used_up_ || thread_time() > end_;
  if (used_up_) throw std::runtime_error("the template computes for too long");
}

void count_template_step() {
  if (budget_of_thread != nullptr) budget_of_thread->count();
}

}  // namespace chasqui
