// What a token of a chat with tools costs on the loop: reading it into content, reasoning and calls, and writing its
// event. Prints microseconds of computing for answers of several lengths; they should not differ. The model is not run.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "api/openai/chat_json.h"
#include "base/thread_time.h"
#include "model/llama_chat_template.h"
#include "model/llama_weights.h"

namespace chasqui {
namespace {

constexpr int kRounds = 15;

struct Kind {
  const char* name;
  const char* begin;
  const char* words;
  const char* end;
};

constexpr Kind kKinds[] = {
    {"content", "", "Some words, and if a < b then some more of them. ", ""},
    {"arguments", "<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": \"", "Some words, say \\\"x\\\" <b>. ",
     "\"}}\n</tool_call>"},
};

struct Cost {
  double microseconds = 0;  // of each token
  double bytes = 0;         // of its event
};

// Of one answer with `count` tokens of four characters.
Cost cost_of(const AnswerFormatPtr& format, const Kind& kind, int count) {
  AnswerHead head;
  head.id = "chatcmpl-12345678901234567890123456789012";
  head.model = "chasqui-demo";
  const auto writer = make_parts_writer(std::move(head), format);
  const std::string words = kind.words;
  std::vector<Event> events(static_cast<std::size_t>(count) + 2);
  events.front().text = kind.begin;
  for (std::size_t i = 1; i + 1 < events.size(); ++i) {
    for (std::size_t c = 0; c < 4; ++c) events[i].text += words[(4 * i + c) % words.size()];
  }
  events.back().text = kind.end;
  Event finished;
  finished.kind = Event::Kind::finished;
  std::string out;
  std::size_t bytes = 0;
  const Duration before = thread_time();
  for (const Event& event : events) {
    out.clear();
    writer->text(event, out);
    bytes += out.size();
  }
  writer->end(finished, out);
  return {to_milliseconds(thread_time() - before) * 1000 / count, static_cast<double>(bytes) / count};
}

int run(const char* path) {
  auto weights = LlamaWeights::from_file(path);
  if (!weights) return std::fprintf(stderr, "%s\n", weights.error().message.c_str()), 1;
  auto chat_template = LlamaChatTemplate::make(*weights);
  if (!chat_template) return std::fprintf(stderr, "%s\n", chat_template.error().message.c_str()), 1;
  Chat chat;
  chat.split_reasoning = true;
  chat.messages.emplace_back().role = "user";
  chat.messages.back().content = "x";
  chat.tools = {{"note", "Writes down.", R"({"type":"object","properties":{"text":{"type":"string"}}})"}};
  const auto prepared = (*chat_template)->prepare(chat);
  if (!prepared) return std::fprintf(stderr, "%s\n", prepared.error().message.c_str()), 1;
  for (const Kind& kind : kKinds) {
    double first = 0;
    for (const int count : {200, 1000, 4000, 16'000}) {
      std::vector<Cost> rounds;
      for (int i = 0; i < kRounds; ++i) rounds.push_back(cost_of(prepared->format, kind, count));
      std::ranges::sort(rounds, {}, &Cost::microseconds);
      const Cost median = rounds[rounds.size() / 2];
      if (first == 0) first = median.microseconds;
      std::printf("%-9s %6d tokens: %6.2f us and %5.1f bytes each, %.2f of the shortest\n", kind.name, count,
                  median.microseconds, median.bytes, median.microseconds / first);
    }
  }
  return 0;
}

}  // namespace
}  // namespace chasqui

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: answer_cost MODEL.gguf\n"), 2;
  return chasqui::run(argv[1]);
}
