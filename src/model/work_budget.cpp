#include "model/work_budget.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/ascii.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/thread_time.h"

namespace chasqui {

// third_party/counted calls these.
void count_template_step();
void count_template_piece();
std::string count_schema_rule(const std::string& name);
void count_schema_depth();
void count_schema_level(const std::string& name);
void count_schema_text(std::size_t bytes);
void bound_repetitions(int& most);
void note_incomplete_schema(const std::string& what);
void count_grammar_steps();
void count_answer_step();
void note_bad_grammar(const std::string& why);
extern const bool template_steps_count;
extern const bool schema_rules_count;
extern const bool schema_trees_count;
extern const bool grammar_steps_count;
extern const bool answer_steps_count;

namespace {

// Reading the clock takes as long as some dozen of them.
constexpr std::uint32_t kStepsBetweenLooks = 1024;
constexpr std::uint32_t kTemplateStep = 16;
constexpr std::uint32_t kSchemaStep = 64;
constexpr std::size_t kNoteBytesMax = 256;
// Of stack, from the budget on. A level of a schema takes about 2 KiB, and the name of its rule has those of all levels
// above.
constexpr std::ptrdiff_t kSchemaDepthMost = kCountLimit<"schema_stack_bytes">;
constexpr std::ptrdiff_t kDepthMost = 4 * 1024 * 1024;
// Of the names and rules that a schema becomes; a few copies of them are held at a time.
constexpr std::size_t kTextMost = kSizeLimit<"schema_text_bytes">;
// Of the texts that a template splits, which is applied about four times for a request. Each takes some 300 bytes.
constexpr std::size_t kPiecesMost = 4 * kSizeLimit<"template_pieces">;
// Of the parser of answers, over one text: about fifteen for each number of an array, with 500 bytes of nodes.
constexpr std::size_t kAnswerStepsMost = kSizeLimit<"answer_steps">;
constexpr std::uint32_t kAnswerStep = 8;

thread_local WorkBudget* budget_of_thread = nullptr;

}  // namespace

WorkBudget::WorkBudget(Duration most)
    : outer_(budget_of_thread),
      begun_at_(static_cast<const char*>(__builtin_frame_address(0))),
      end_(outer_ == nullptr ? thread_time() + most : std::min(outer_->end_, thread_time() + most)) {
  CHECK(template_steps_count && schema_rules_count && schema_trees_count && grammar_steps_count && answer_steps_count);
  budget_of_thread = this;
}

WorkBudget::~WorkBudget() { budget_of_thread = outer_; }

bool WorkBudget::is_over() const { return thread_time() > end_; }

// Once used up it stays so: llama-common may try a template again in another way.
void WorkBudget::count(Work work, std::uint32_t steps) {
  steps_ += steps;
  // Stacks grow downwards.
  const std::ptrdiff_t depth = begun_at_ - static_cast<const char*>(__builtin_frame_address(0));
  const bool too_deep = depth > (work == Work::schema ? kSchemaDepthMost : kDepthMost);
  if (!used_up_ && !too_deep && steps_ < kStepsBetweenLooks) return;
  steps_ = 0;
  if (!used_up_) last_work_ = work;
  too_deep_ = too_deep_ || too_deep;
  used_up_ = used_up_ || too_deep || thread_time() > end_;
  if (used_up_) throw std::runtime_error(too_deep_ ? "it is nested too deeply" : "it computes for too long");
}

void WorkBudget::count_text(std::size_t bytes) {
  text_ += bytes;
  if (text_ > kTextMost) grow_too_large(Work::schema);
}

void WorkBudget::count_piece() {
  count(Work::text_template, kTemplateStep);
  if (++pieces_ > kPiecesMost) grow_too_large(Work::text_template);
}

void WorkBudget::count_answer_step() {
  count(Work::answer, kAnswerStep);
  if (++answer_steps_ > kAnswerStepsMost) grow_too_large(Work::answer);
}

void WorkBudget::grow_too_large(Work work) {
  if (!used_up_) last_work_ = work;
  used_up_ = true;
  throw std::runtime_error("it becomes too large");
}

void count_template_step() {
  if (budget_of_thread != nullptr) budget_of_thread->count(WorkBudget::Work::text_template, kTemplateStep);
}

void count_template_piece() {
  if (budget_of_thread != nullptr) budget_of_thread->count_piece();
}

void count_answer_step() {
  if (budget_of_thread != nullptr) budget_of_thread->count_answer_step();
}

void count_grammar_steps() {
  if (budget_of_thread != nullptr) budget_of_thread->count(WorkBudget::Work::grammar, kStepsBetweenLooks);
}

void count_schema_depth() {
  if (budget_of_thread != nullptr) budget_of_thread->count(WorkBudget::Work::schema, kSchemaStep);
}

void count_schema_level(const std::string& name) {
  count_schema_text(name.size());
  count_schema_depth();
}

void count_schema_text(std::size_t bytes) {
  if (budget_of_thread != nullptr) budget_of_thread->count_text(bytes);
}

// A tool says how long a text may be that no answer is as long as: half a million characters, each a rule of its own.
void bound_repetitions(int& most) {
  if (most > kCountLimit<"schema_repeats">) most = std::numeric_limits<int>::max();
}

// The name of a rule: letters, digits and hyphens, with one hyphen for any others in a row.
std::string count_schema_rule(const std::string& name) {
  if (budget_of_thread != nullptr) budget_of_thread->count(WorkBudget::Work::schema, kStepsBetweenLooks);
  std::string out;
  out.reserve(name.size());
  bool replaced = false;
  for (const char c : name) {
    const bool good = is_ascii_word(c) || c == '-';
    if (good || !replaced) out += good ? c : '-';
    replaced = !good;
  }
  return out;
}

void note_incomplete_schema(const std::string& what) {
  log_warning("a schema is kept in part", {{"what", what.substr(0, kNoteBytesMax)}});
}

void note_bad_grammar(const std::string& why) {
  log_debug("a grammar cannot be parsed", {{"why", why.substr(0, kNoteBytesMax)}});
}

}  // namespace chasqui
