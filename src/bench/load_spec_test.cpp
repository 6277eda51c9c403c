#include "bench/load_spec.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

LoadSpec good(std::string_view text) {
  auto spec = parse_load(text, 1);
  EXPECT_TRUE(spec.has_value()) << text << ": " << (spec ? "" : spec.error().message);
  return spec ? *spec : LoadSpec{};
}

std::string complaint(std::string_view text) {
  const auto spec = parse_load(text, 1);
  EXPECT_FALSE(spec.has_value()) << text;
  return spec ? "" : spec.error().message;
}

TEST(LoadSpec, HasDefaults) {
  const LoadSpec spec = good("");
  EXPECT_EQ(spec.name, "load1");
  EXPECT_EQ(spec.clients, 1);
  EXPECT_EQ(spec.requests, 100);
  EXPECT_FALSE(spec.duration_s.has_value());
  EXPECT_TRUE(spec.stream);
}

TEST(LoadSpec, ReadsEveryOption) {
  const LoadSpec spec = good(
      "name=a,clients=4,requests=7,duration=2.5,prompt-words=10-20,shared-prefix-words=5,max-tokens=12*60/40-50*20/96,"
      "priority=background,key=k,stream=0,start=5,abandon=0.25,retry=1,think=0.5");
  EXPECT_EQ(spec.name, "a");
  EXPECT_EQ(spec.clients, 4);
  EXPECT_EQ(spec.requests, 7);
  EXPECT_EQ(spec.duration_s, 2.5);
  EXPECT_EQ(spec.prompt_words.low, 10);
  EXPECT_EQ(spec.prompt_words.high, 20);
  EXPECT_EQ(spec.shared_prefix_words, 5);
  ASSERT_EQ(spec.max_tokens.size(), 3U);
  EXPECT_EQ(spec.max_tokens[0].weight, 60);
  EXPECT_EQ(spec.max_tokens[1].tokens.high, 50);
  EXPECT_EQ(spec.max_tokens[2].weight, 1);
  EXPECT_EQ(spec.priority, "background");
  EXPECT_EQ(spec.key, "k");
  EXPECT_FALSE(spec.stream);
  EXPECT_EQ(spec.start_s, 5);
  EXPECT_EQ(spec.abandon, 0.25);
  EXPECT_TRUE(spec.retry);
  EXPECT_EQ(spec.think_s, 0.5);
}

TEST(LoadSpec, IsOpenOrClosed) {
  EXPECT_EQ(good("rate=2.5").clients, 0);
  EXPECT_EQ(good("rate=2.5").rate, 2.5);
  EXPECT_NE(complaint("rate=2,clients=3").find("exclude"), std::string::npos);
  EXPECT_NE(complaint("rate=2,think=3").find("closed loop"), std::string::npos);
}

TEST(LoadSpec, ComplaintsNameTheOptionAndWhatIsAllowed) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"clients=0", "clients must be 1 to 100000, not \"0\""},
      {"clients=x", "clients must be"},
      {"clients", "clients must be"},
      {"clients=3x", "clients must be"},
      {"rate=-1", "rate must be requests per second"},
      {"rate=nan", "rate must be"},
      {"requests=1.5", "requests must be"},
      {"duration=0", "duration must be seconds"},
      {"prompt-words=9-3", "prompt-words must be 1 to 1000000, or a range"},
      {"max-tokens=", "max-tokens must be"},
      {"max-tokens=3*0", "max-tokens must be"},
      {"max-tokens=3/", "max-tokens must be"},
      {"priority=urgent", "priority must be interactive, standard or background"},
      {"stream=yes", "stream must be 0 or 1"},
      {"abandon=1.1", "abandon must be a probability"},
      {"name=", "name must be a word"},
      {"shared-prefix-words=30", "at most prompt-words, 24"},
      {"speed=3", "there is no option \"speed\"; there are name, clients"},
  };
  for (const auto& [text, part] : cases) {
    EXPECT_NE(complaint(text).find(part), std::string::npos) << complaint(text);
  }
}

}  // namespace
}  // namespace chasqui::bench
