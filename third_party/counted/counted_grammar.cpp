// The grammars of libllama with a call of ours in each of their steps, and nothing on standard error. Two of its functions
// are ours, since what they do takes the square of the ways through a grammar: finding the stacks that follow, and copying.
// A third takes part of a token, for grammars that begin inside one (src/model/lazy_grammar.h).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "llama-grammar.h"
#include "llama-impl.h"
#include "llama-sampler.h"
#include "llama-vocab.h"

namespace chasqui {

void count_grammar_steps();  // model/work_budget.cpp
void note_bad_grammar(const std::string& why);
extern const bool grammar_steps_count;  // a reference to it links this file instead of libllama's
const bool grammar_steps_count = true;

namespace {

constexpr std::size_t kGrammarStepsTogether = 1024;  // each takes some nanoseconds

thread_local std::size_t grammar_steps = 0;

void count_grammar_work(std::size_t steps) {
  grammar_steps += steps;
  if (grammar_steps < kGrammarStepsTogether) return;
  grammar_steps = 0;
  count_grammar_steps();
}

// Stacks of a vector that grows, by what is in them.
class StackSet {
 public:
  explicit StackSet(llama_grammar_stacks& stacks) : stacks_(stacks), places_(0, Hash{&stacks}, Same{&stacks}) {
    count_grammar_work(stacks.size());
    for (std::size_t i = 0; i < stacks.size(); ++i) places_.insert(i);
  }

  void add(llama_grammar_stack stack) {
    stacks_.push_back(std::move(stack));
    if (!places_.insert(stacks_.size() - 1).second) stacks_.pop_back();
  }

  bool added(const llama_grammar_stack& stack) {
    const std::size_t before = stacks_.size();
    add(stack);
    return stacks_.size() > before;
  }

 private:
  struct Hash {
    const llama_grammar_stacks* stacks;
    std::size_t operator()(std::size_t place) const {
      std::size_t out = 0;
      for (const llama_grammar_element* element : (*stacks)[place]) {
        out = (out ^ reinterpret_cast<std::uintptr_t>(element)) * 0x9E3779B97F4A7C15;
        out ^= out >> 29;
      }
      return out;
    }
  };
  struct Same {
    const llama_grammar_stacks* stacks;
    bool operator()(std::size_t a, std::size_t b) const { return (*stacks)[a] == (*stacks)[b]; }
  };

  llama_grammar_stacks& stacks_;
  std::unordered_set<std::size_t, Hash, Same> places_;
};

// In place of fprintf(): what libllama says of a grammar that it cannot parse holds all of the client's text.
template <class... Printed>
void say(std::FILE*, const char*, Printed...) {}

template <class Where, class Text>
void say(std::FILE*, const char*, Where, const char* why, Text) {
  note_bad_grammar(why);
}

struct OurOwn {};

thread_local const std::string* accepted_text = nullptr;  // what the next token says, where that is not all of it

bool ends(const llama_grammar_element* element) {
  return element->type == LLAMA_GRETYPE_END || element->type == LLAMA_GRETYPE_ALT;
}

// Adds to `out` every stack that `stack` becomes where rules are replaced by what they may begin with, until a character
// or a token is on top, or nothing is left. None of them twice.
void advance_stack(const llama_grammar_rules& rules, const llama_grammar_stack& stack, llama_grammar_stacks& out, OurOwn) {
  StackSet reached(out);
  llama_grammar_stacks on_the_way;
  StackSet seen(on_the_way);
  std::vector<llama_grammar_stack> todo{stack};
  while (!todo.empty()) {
    llama_grammar_stack current = std::move(todo.back());
    todo.pop_back();
    count_grammar_work(1 + current.size());
    if (current.empty() || current.back()->type != LLAMA_GRETYPE_RULE_REF) {
      reached.add(std::move(current));
      continue;
    }
    if (!seen.added(current)) continue;
    const llama_grammar_element* const reference = current.back();
    current.pop_back();
    if (!ends(reference + 1)) current.push_back(reference + 1);
    const llama_grammar_element* element = rules[reference->value].data();
    for (bool more = true; more; ++element) {
      todo.push_back(current);
      if (!ends(element)) todo.back().push_back(element);
      while (!ends(element)) {
        ++element;
        count_grammar_work(1);
      }
      more = element->type == LLAMA_GRETYPE_ALT;
    }
  }
}

}  // namespace

void accept_grammar_text(llama_sampler* grammar, llama_token token, const std::string& text) {
  accepted_text = &text;
  llama_sampler_accept(grammar, token);
}

}  // namespace chasqui

#undef GGML_ASSERT
#define GGML_ASSERT(x)                                  \
  do {                                                  \
    chasqui::count_grammar_work(1);                     \
    if (!(x)) GGML_ABORT("GGML_ASSERT(%s) failed", #x); \
  } while (0)
using chasqui::advance_stack;
// Where it is defined the last is a parameter, a function; where it is called it is a value, and ours fits better.
#define llama_grammar_advance_stack(rules, stack, out) advance_stack(rules, stack, out, chasqui::OurOwn())
// std::find() in a list of stacks; other functions of that name have one argument.
#define CHASQUI_FIND_IN(begin, end, what) find((chasqui::count_grammar_work((end) - (begin)), begin), end, what)
#define CHASQUI_FIND(text) find(text)
#define CHASQUI_THIRD_OF(a, b, c, name, ...) name
#define find(...) CHASQUI_THIRD_OF(__VA_ARGS__, CHASQUI_FIND_IN, , CHASQUI_FIND)(__VA_ARGS__)
#define fprintf chasqui::say
#define llama_grammar_clone_impl llama_grammar_clone_as_it_was
#define llama_grammar_accept_impl llama_grammar_accept_as_it_was
#include "llama-grammar.cpp"
#undef find
#undef fprintf
#undef llama_grammar_clone_impl
#undef llama_grammar_accept_impl

void llama_grammar_accept_impl(llama_grammar& grammar, llama_token token) {
  const std::string* const text = std::exchange(chasqui::accepted_text, nullptr);
  if (text == nullptr) return llama_grammar_accept_as_it_was(grammar, token);
  llama_grammar_accept_token(grammar, token, *text);
}

llama_grammar* llama_grammar_clone_impl(const llama_grammar& grammar) {
  using Begin = std::pair<const llama_grammar_element*, std::size_t>;
  std::vector<Begin> begins;
  begins.reserve(grammar.rules.size());
  for (std::size_t i = 0; i < grammar.rules.size(); ++i) begins.emplace_back(grammar.rules[i].data(), i);
  std::sort(begins.begin(), begins.end());
  auto* copy = new llama_grammar(grammar);
  for (llama_grammar_stack& stack : copy->stacks) {
    for (const llama_grammar_element*& element : stack) {
      const auto [begin, rule] = *std::prev(std::upper_bound(begins.begin(), begins.end(), Begin(element, -1)));
      element = copy->rules[rule].data() + (element - begin);
    }
  }
  return copy;
}
