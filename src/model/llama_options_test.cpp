#include "model/llama_options.h"

#include <array>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

Result<void> set(LlamaOptions& options, std::string_view name, std::vector<std::string> values = {}) {
  return options.set(name, values);
}

std::string message_of(const Result<void>& result) { return result ? "" : result.error().message; }

TEST(LlamaOptions, KnowLlamaServersFlags) {
  const LlamaOptions options;
  EXPECT_GT(options.all().size(), 200u);
  ASSERT_NE(options.find("--top-k"), nullptr);
  EXPECT_EQ(options.find("--top-k")->variable, "LLAMA_ARG_TOP_K");
  EXPECT_EQ(options.find("--top-k")->values, 1);
  EXPECT_EQ(options.find("-nr"), options.find("--repack"));
  EXPECT_EQ(options.find("--control-vector-layer-range")->values, 2);
  EXPECT_EQ(options.find("--top_k"), nullptr);
}

TEST(LlamaOptions, AreTheDefaultsOfLlamaServerWhereNothingIsSaid) {
  LlamaOptions options;
  ASSERT_TRUE(options.finish());
  const RequestDefaults defaults = options.defaults({});
  const SamplingParams ours;
  for (const SamplingRule& rule : sampling_rules()) {
    EXPECT_EQ(rule.read(defaults.sampling), rule.read(ours)) << rule.field;
  }
  EXPECT_EQ(defaults.sampling.dry_sequence_breakers, ours.dry_sequence_breakers);
  EXPECT_EQ(defaults.sampling.steps, std::nullopt);
  EXPECT_FALSE(defaults.sampling.seed);
  EXPECT_TRUE(defaults.stop.empty());
  EXPECT_FALSE(defaults.enable_thinking);
  EXPECT_FALSE(defaults.reasoning_budget);
  EXPECT_EQ(defaults.template_args.at("preserve_reasoning"), "true");
}

TEST(LlamaOptions, OfDevicesAreReadWhenAllDevicesAreThere) {
  LlamaOptions options;
  ASSERT_TRUE(set(options, "--device", {"RPC0"})) << "it may be there later";
  ASSERT_TRUE(set(options, "--rpc", {"a:1,b:2"})) << "nothing connects";
  EXPECT_EQ(options.rpc_servers(), "a:1,b:2");
  EXPECT_EQ(set(options, "--device").error().field, "--device") << "what can be seen at once";
  const auto finished = options.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().field, "--device");
  EXPECT_NE(finished.error().message.find("RPC0"), std::string::npos) << finished.error().message;

  LlamaOptions forgetful;
  ASSERT_TRUE(set(forgetful, "--device", {"RPC0"}));
  ASSERT_TRUE(set(forgetful, "-ot", {"a=RPC0[a:1]"}));
  forgetful.forget_devices();
  EXPECT_TRUE(forgetful.finish());
}

TEST(LlamaOptions, NoSamplersAreNoneAtAll) {
  LlamaOptions options;
  ASSERT_TRUE(set(options, "--samplers", {""}));
  ASSERT_TRUE(options.finish());
  EXPECT_EQ(options.defaults({}).sampling.steps, std::vector<SamplingStep>{});
}

TEST(LlamaOptions, ChangeTheDefaultsOfRequests) {
  LlamaOptions options;
  ASSERT_TRUE(set(options, "--temp", {"0.25"}));
  ASSERT_TRUE(set(options, "--top-k", {"7"}));
  ASSERT_TRUE(set(options, "--seed", {"11"}));
  ASSERT_TRUE(set(options, "--samplers", {"top_k;temperature"}));
  ASSERT_TRUE(set(options, "--logit-bias", {"15+2.5"}));
  ASSERT_TRUE(set(options, "-r", {"END\\n"}));
  ASSERT_TRUE(set(options, "--ignore-eos"));
  ASSERT_TRUE(set(options, "--grammar", {"root ::= \"a\""}));
  ASSERT_TRUE(set(options, "--reasoning", {"off"}));
  ASSERT_TRUE(set(options, "--reasoning-budget", {"100"}));
  ASSERT_TRUE(set(options, "--chat-template-kwargs", {R"({"a":1})"}));
  ASSERT_TRUE(set(options, "--no-prefill-assistant"));
  ASSERT_TRUE(options.finish());
  const RequestDefaults defaults = options.defaults({});
  EXPECT_EQ(defaults.sampling.temperature, 0.25f);
  EXPECT_EQ(defaults.sampling.top_k, 7);
  EXPECT_EQ(defaults.sampling.seed, 11u);
  EXPECT_EQ(defaults.sampling.steps, (std::vector{SamplingStep::top_k, SamplingStep::temperature}));
  ASSERT_EQ(defaults.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(defaults.sampling.logit_bias[0].token, 15);
  EXPECT_EQ(defaults.sampling.logit_bias[0].bias, 2.5f);
  EXPECT_EQ(defaults.stop, (std::vector<std::string>{"END\n"}));
  EXPECT_TRUE(defaults.sampling.ignore_eos);
  EXPECT_EQ(defaults.grammar, "root ::= \"a\"");
  EXPECT_EQ(defaults.enable_thinking, false);
  EXPECT_EQ(defaults.reasoning_budget, 100);
  EXPECT_EQ(defaults.template_args.at("a"), "1");
  EXPECT_FALSE(defaults.template_args.contains("enable_thinking"));
  EXPECT_FALSE(defaults.prefill);
}

TEST(LlamaOptions, TakeSamplersAsLetters) {
  LlamaOptions options;
  ASSERT_TRUE(set(options, "--sampling-seq", {"kt"}));
  EXPECT_EQ(options.defaults({}).sampling.steps, (std::vector{SamplingStep::top_k, SamplingStep::temperature}));
}

TEST(LlamaOptions, WinOverWhatTheModelRecommends) {
  ModelInfo info;
  info.sampling.temperature = 0.5f;
  info.sampling.top_k = 3;
  LlamaOptions options;
  ASSERT_TRUE(set(options, "--temp", {"0.8"}));  // llama-server's default, but said
  const RequestDefaults defaults = options.defaults(info);
  EXPECT_EQ(defaults.sampling.temperature, 0.8f);
  EXPECT_EQ(defaults.sampling.top_k, 3);
}

TEST(LlamaOptions, ReadVariablesAsLlamaServerDoes) {
  LlamaOptions options;
  ASSERT_TRUE(options.set_variable("LLAMA_ARG_TOP_K", "9"));
  ASSERT_TRUE(options.set_variable("LLAMA_ARG_PREFILL_ASSISTANT", "0"));
  const RequestDefaults defaults = options.defaults({});
  EXPECT_EQ(defaults.sampling.top_k, 9);
  EXPECT_FALSE(defaults.prefill);
}

TEST(LlamaOptions, NameTheFlagThatIsWrong) {
  LlamaOptions options;
  EXPECT_EQ(message_of(set(options, "--top-k", {"many"})), "--top-k: a number was expected; got many");
  EXPECT_EQ(message_of(set(options, "--top-k")), "--top-k: a value is missing");
  EXPECT_NE(message_of(set(options, "--reasoning", {"maybe"})).find("--reasoning: "), std::string::npos);
  EXPECT_NE(message_of(set(options, "--chat-template-kwargs", {"{"})).find("--chat-template-kwargs: "),
            std::string::npos);
  EXPECT_NE(message_of(options.set_variable("LLAMA_ARG_TOP_K", "x")).find("LLAMA_ARG_TOP_K: "), std::string::npos);
}

}  // namespace
}  // namespace chasqui
