// What counting the steps of templates, schemas and grammars costs: `counting_cost` has the parts of llama.cpp with
// counters (third_party/counted), `counting_cost_without` the same parts as they are. Both print microseconds of
// computing time for one request's work, the least of several rounds; docs/decisions/counted_code.md has the figures.
// With an argument: the time of a round trip of so many bytes to another process and back, which is what a process of
// its own for such work would cost at least.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread_time.h"
#include "model/llama_chat_template.h"
#include "model/llama_tokenizer.h"
#include "model/llama_weights.h"
#include "model/sampling_parts.h"
#include "model/schema_grammar.h"
#include "model/work_budget.h"

namespace chasqui {

#if defined(CHASQUI_UNCOUNTED)
// In place of third_party/counted, which is not linked here.
extern const bool template_steps_count;
extern const bool schema_rules_count;
extern const bool grammar_steps_count;
extern const bool schema_trees_count;
extern const bool answer_steps_count;
const bool template_steps_count = true;
const bool schema_rules_count = true;
const bool grammar_steps_count = true;
const bool schema_trees_count = true;
const bool answer_steps_count = true;
void accept_grammar_text(llama_sampler*, Token, const std::string&);
void accept_grammar_text(llama_sampler*, Token, const std::string&) { std::abort(); }
#endif

namespace {

double microseconds(Duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

void measure(const char* what, int times, const std::function<void()>& work) {
  double least = 1e12;
  for (int round = 0; round < 15; ++round) {
    const WorkBudget budget(seconds(1000));
    const Duration begun = thread_time();
    for (int i = 0; i < times; ++i) work();
    least = std::min(least, microseconds(thread_time() - begun) / times);
  }
  std::printf("%-44s %9.2f µs\n", what, least);
}

Chat chat_of(std::size_t messages, std::size_t tools) {
  Chat chat;
  for (std::size_t i = 0; i < messages; ++i) {
    ChatMessage& message = chat.messages.emplace_back();
    message.role = i % 2 == 0 ? "user" : "assistant";
    message.content = "What is a quipu, and who tied the knots in it? Say it in two sentences.";
  }
  for (std::size_t i = 0; i < tools; ++i) {
    chat.tools.push_back({"tool_" + std::to_string(i), "Looks something up.",
                          R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}})"});
  }
  return chat;
}

void prepare(const LlamaChatTemplate& chat_template, const Chat& chat) { CHECK(chat_template.prepare(chat)); }

void round_trips(std::size_t bytes) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  std::string text(bytes, 'x');
  const auto all = [&text](int fd, auto step) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t now = step(fd, text.data() + done, text.size() - done);
      if (now <= 0) std::exit(0);
      done += static_cast<std::size_t>(now);
    }
  };
  if (fork() == 0) {
    close(ends[0]);
    for (;;) {
      all(ends[1], &read);
      all(ends[1], &write);
    }
  }
  close(ends[1]);
  std::vector<double> took;
  const RealClock clock;
  for (int i = 0; i < 5000; ++i) {
    const TimePoint begun = clock.now();
    all(ends[0], &write);
    all(ends[0], &read);
    took.push_back(microseconds(clock.now() - begun));
  }
  std::sort(took.begin(), took.end());
  std::printf("%zu bytes there and back: %.1f µs at p50, %.1f at p99\n", bytes, took[2500], took[4950]);
}

void measure_all() {
  auto weights = LlamaWeights::from_file(CHASQUI_DEMO_MODEL);
  CHECK(weights);
  auto made = LlamaChatTemplate::make(*weights, "");
  CHECK(made);
  const LlamaTokenizer tokenizer(*weights);
  const LlamaChatTemplate& chat_template = **made;
  measure("chat of 1 message", 2000, [&, chat = chat_of(1, 0)] { prepare(chat_template, chat); });
  measure("chat of 20 messages", 500, [&, chat = chat_of(20, 0)] { prepare(chat_template, chat); });
  measure("chat of 200 messages", 50, [&, chat = chat_of(200, 0)] { prepare(chat_template, chat); });
  measure("chat of 1 message with 4 tools", 100, [&, chat = chat_of(1, 4)] { prepare(chat_template, chat); });
  measure("chat of 20 messages with 16 tools", 30, [&, chat = chat_of(20, 16)] { prepare(chat_template, chat); });
  const std::string schema =
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},)"
      R"("tags":{"type":"array","items":{"enum":["a","b","c"]}}},"required":["name","age"]})";
  measure("a schema of 3 properties to a grammar", 300, [&] { CHECK(grammar_of_schema(schema)); });
  Grammar grammar;
  grammar.text = *grammar_of_schema(schema);
  measure("that grammar compiled", 300, [&] { CHECK(compile_grammar(grammar, (*weights)->vocab())); });
  const auto tokens =
      tokenizer.tokenize(R"({"name":"Inti","age":33,"tags":["a","b"]})", AddSpecial::no, ParseSpecial::no);
  auto compiled = compile_grammar(grammar, (*weights)->vocab());
  measure("an answer of 30 tokens held against it", 300, [&] {
    GrammarGate gate(copy_sampler(**compiled));
    for (const Token token : tokens) {
      if (gate.present() && gate.allows(token)) gate.accept(token);
    }
  });
}

}  // namespace
}  // namespace chasqui

int main(int count, char** arguments) {
  if (count > 1) {
    chasqui::round_trips(std::strtoul(arguments[1], nullptr, 10));
  } else {
    chasqui::measure_all();
  }
  return 0;
}
