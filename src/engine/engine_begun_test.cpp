// Answers that another node has begun, in an engine: beside others, with and without what a prefix cache has of them,
// and where they end before they have gone on.
#include <gtest/gtest.h>

#include "engine/fake_workers.h"

namespace chasqui {
namespace {

using Change = std::function<void(RequestDraft&)>;

ClientConfig cached(std::int32_t slots) {
  ClientConfig config;
  config.slots = slots;
  config.engine.reuse.cache.bytes = 8 << 20;
  return config;
}

std::vector<Token> beginning(const std::vector<Token>& tokens, std::size_t n) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)};
}

// All that it says, the last token included.
std::vector<Token> tokens_of(FakeClient& client, std::string_view prompt, std::int64_t most, const Change& change) {
  const RequestPtr request = client.submit(prompt, most, [&](RequestDraft& draft) {
    if (change) change(draft);
    draft.keep_tokens = true;
  });
  client.read_to_end(request);
  return client.of(request).last.generated;
}

void expect_whole(FakeClient& client, const RequestPtr& request, const std::vector<Token>& whole) {
  expect_as_alone(client, request);
  const FakeClient::Answer& answer = client.of(request);
  EXPECT_EQ(answer.last.generated, whole);
  EXPECT_EQ(answer.last.usage.prompt, static_cast<TokenCount>(request->prompt.size()));
  EXPECT_EQ(answer.last.usage.completion, std::ssize(whole));
  EXPECT_EQ(answer.last.usage.begun, std::ssize(request->begun));
  EXPECT_LE(answer.last.usage.cached, answer.last.usage.prompt);
}

// From each place, with what the cache has by then: the first one has computed all of it.
void expect_each_split(FakeClient& client, std::string_view prompt, const Change& change = {}) {
  const std::vector<Token> whole = tokens_of(client, prompt, 60, change);
  ASSERT_GT(whole.size(), 3u);
  for (std::size_t n = 1; n < whole.size(); ++n) {
    SCOPED_TRACE("begun: " + std::to_string(n));
    const RequestPtr request = client.submit(prompt, 60, [&](RequestDraft& draft) {
      if (change) change(draft);
      draft.keep_tokens = true;
      draft.begun = beginning(whole, n);
    });
    client.read_to_end(request);
    expect_whole(client, request, whole);
  }
}

const std::vector<Change>& kinds() {
  static const std::vector<Change> all = {
      [](RequestDraft& draft) { draft.sampling.temperature = 0; },
      [](RequestDraft& draft) {
        draft.sampling.temperature = 20;
        draft.sampling.top_k = 0;
        draft.sampling.top_p = 1;
        draft.sampling.min_p = 0;
        draft.sampling.seed = 3;
        draft.sampling.ignore_eos = true;
      },
      [](RequestDraft& draft) {
        draft.sampling.temperature = 1.5f;
        draft.sampling.seed = 5;
        draft.sampling.presence_penalty = 100;
        draft.stop = {"the end of all", "e s"};
      },
  };
  return all;
}

TEST(EngineBegun, GoesOnFromEachPlaceWithNothingInACache) {
  FakeClient client;
  for (const Change& change : kinds()) expect_each_split(client, chat("Tell me a story"), change);
}

TEST(EngineBegun, GoesOnFromEachPlaceWithAllInACache) {
  FakeClient client(cached(2));
  for (const Change& change : kinds()) expect_each_split(client, chat("Tell me a story"), change);
}

TEST(EngineBegun, UsesWhatACacheHasOfPromptAndAnswer) {
  FakeClient client(cached(1));
  const std::string prompt = chat("Tell me a story that is long enough for a cache to keep it");
  const std::vector<Token> whole = tokens_of(client, prompt, 60, endless);
  const std::uint64_t before = client.engine.metrics().prompt_tokens.value();
  const RequestPtr request = client.submit(prompt, 60, [&](RequestDraft& draft) {
    endless(draft);
    draft.keep_tokens = true;
    draft.begun = beginning(whole, 40);
  });
  client.read_to_end(request);
  expect_whole(client, request, whole);
  EXPECT_EQ(client.of(request).last.usage.cached, client.of(request).last.usage.prompt);
  EXPECT_EQ(client.engine.metrics().prompt_tokens.value(), before) << "none of it is computed again";
}

TEST(EngineBegun, GoesOnBesideOthersInAPoolThatIsTooSmallForAll) {
  ClientConfig config;
  config.slots = 4;
  config.unified = true;
  FakeClient client(config);
  const Change change = kinds()[1];
  std::vector<std::vector<Token>> whole;
  for (int i = 0; i < 12; ++i) whole.push_back(tokens_of(client, story(i), 180, change));
  std::vector<RequestPtr> requests;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    requests.push_back(client.submit(story(static_cast<int>(i)), 180, [&](RequestDraft& draft) {
      change(draft);
      draft.keep_tokens = true;
      if (i % 3 > 0) draft.begun = beginning(whole[i], 7 * i + 1);
    }));
  }
  client.read_to_end();
  for (std::size_t i = 0; i < whole.size(); ++i) expect_whole(client, requests[i], whole[i]);
  EXPECT_EQ(client.engine.metrics().kv_slots_used.value(), 0);
}

TEST(EngineBegun, CountsNothingThatAnotherNodeHasGenerated) {
  FakeClient client;
  const std::vector<Token> whole = tokens_of(client, chat("Tell me a story"), 30, endless);
  const EngineMetrics& metrics = client.engine.metrics();
  const std::uint64_t before = metrics.generation_tokens.value();
  const RequestPtr request = client.submit(chat("Tell me a story"), 30, [&](RequestDraft& draft) {
    endless(draft);
    draft.begun = beginning(whole, 28);
    draft.tell_progress = true;
  });
  client.read_to_end(request);
  EXPECT_EQ(metrics.generation_tokens.value() - before, 2u);
  const FakeClient::Answer& answer = client.of(request);
  EXPECT_EQ(answer.tokens, 30);
  EXPECT_EQ(answer.events, 31) << "nothing but text and the end: its prompt was read elsewhere";
}

TEST(EngineBegun, IsToldAgainAlsoWhereItIsCancelledBeforeItHasASlot) {
  FakeClient alone;
  const std::vector<Token> whole = tokens_of(alone, chat("Tell me a story"), 30, endless);
  StepGate gate;
  ClientConfig config;
  config.slots = 1;
  config.gate = &gate;
  FakeClient client(config);
  const RequestPtr running = client.submit(chat("hold the slot"), 20, endless);
  gate.wait_inside(1);
  const RequestPtr waiting = client.submit(chat("Tell me a story"), 30, [&](RequestDraft& draft) {
    endless(draft);
    draft.begun = beginning(whole, 12);
  });
  client.engine.cancel(waiting->id);
  gate.open();
  client.read_to_end();
  const FakeClient::Answer& answer = client.of(waiting);
  EXPECT_EQ(answer.last.reason, FinishReason::cancelled);
  EXPECT_EQ(answer.tokens, 12);
  EXPECT_FALSE(answer.text.empty());
  EXPECT_TRUE(answer_alone(*waiting).text.starts_with(answer.text)) << answer.text;
}

TEST(EngineBegun, StopsAtOnceWhereItHasEnded) {
  FakeClient client;
  const std::string_view text = "one two three";
  const RequestPtr request = client.submit(chat("Tell me a story"), 30, [&](RequestDraft& draft) {
    draft.begun = sim_tokenizer()->tokenize(text, AddSpecial::no, ParseSpecial::no);
    draft.stop = {"three"};
    draft.keep_tokens = true;
  });
  client.read_to_end(request);
  const FakeClient::Answer& answer = client.of(request);
  EXPECT_EQ(answer.last.reason, FinishReason::stop);
  EXPECT_EQ(answer.last.stop_string, "three");
  EXPECT_EQ(answer.text, "one two ");
  EXPECT_EQ(answer.last.generated, request->begun);
  const RequestPtr next = client.submit(chat("Tell me a story"));
  client.read_to_end(next);
  expect_as_alone(client, next);
}

}  // namespace
}  // namespace chasqui
