// The table of generation fields: that it says what is so, and that each of its fields changes something.
#include "api/body/generation_fields.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

namespace json = boost::json;

RequestDraft read_fields(const std::string& body) {
  const json::object object = json::parse(body).as_object();
  Fields fields(object);
  RequestDraft draft;
  read_generation_fields(fields, draft);
  EXPECT_TRUE(fields.ok()) << body << ": " << (fields.ok() ? "" : fields.error().message);
  return draft;
}

TEST(GenerationFields, TheTableInTheDocumentationIsThisOne) {
  std::ifstream file(CHASQUI_SOURCE_DIR "/docs/api.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(generation_field_rows()), std::string::npos) << "docs/api.md should have these rows:\n"
                                                                         << generation_field_rows();
}

TEST(GenerationFields, EveryNumberThatIsCheckedCanBeSaid) {
  for (const SamplingRule& rule : sampling_rules()) {
    const auto fields = generation_fields();
    const auto found = std::ranges::find(fields, rule.field, &GenerationField::name);
    ASSERT_NE(found, fields.end()) << rule.field;
    EXPECT_EQ(found->read, nullptr) << rule.field;
    const double other = rule.read(SamplingParams{}) == rule.maximum ? rule.minimum : rule.maximum;
    const RequestDraft draft = read_fields("{\"" + std::string(rule.field) + "\":" + std::to_string(other) + "}");
    EXPECT_FLOAT_EQ(static_cast<float>(rule.read(draft.sampling)), static_cast<float>(other)) << rule.field;
  }
}

TEST(GenerationFields, NoNameIsUsedTwice) {
  std::set<std::string_view> names;
  for (const GenerationField& field : generation_fields()) EXPECT_TRUE(names.insert(field.name).second) << field.name;
}

TEST(GenerationFields, AnAliasIsTheSameField) {
  EXPECT_EQ(read_fields(R"({"n_predict":3})").max_tokens, 3);
  EXPECT_EQ(read_fields(R"({"max_tokens":4,"max_completion_tokens":5})").max_tokens, 5);
  EXPECT_EQ(read_fields(R"({"n_predict":3,"max_tokens":4,"max_completion_tokens":5})").max_tokens, 3);
  EXPECT_FLOAT_EQ(read_fields(R"({"typ_p":0.5})").sampling.typical_p, 0.5f);
  EXPECT_FLOAT_EQ(read_fields(R"({"repetition_penalty":1.5})").sampling.repeat_penalty, 1.5f);
}

TEST(GenerationFields, SamplersHaveNamesAndLetters) {
  const std::vector<SamplingStep> wanted = {SamplingStep::top_k, SamplingStep::typical_p, SamplingStep::temperature};
  EXPECT_EQ(read_fields(R"({"samplers":["top_k","typ_p","temperature"]})").sampling.steps, wanted);
  EXPECT_EQ(read_fields(R"({"samplers":["top-k","typical_p","temp"]})").sampling.steps, wanted);
  EXPECT_EQ(read_fields(R"({"samplers":"kyt"})").sampling.steps, wanted);
  EXPECT_EQ(read_fields(R"({})").sampling.steps, std::nullopt) << "the default order";
  EXPECT_EQ(read_fields(R"({"samplers":[]})").sampling.steps, std::vector<SamplingStep>{}) << "none at all";
  EXPECT_EQ(read_fields(R"({"samplers":""})").sampling.steps, std::vector<SamplingStep>{});
}

TEST(GenerationFields, PrioritiesOfOtherServersAreClasses) {
  EXPECT_EQ(read_fields(R"({"priority":0})").service_class, ServiceClass::standard);
  EXPECT_EQ(read_fields(R"({"priority":-1})").service_class, ServiceClass::interactive);
  EXPECT_EQ(read_fields(R"({"priority":9})").service_class, ServiceClass::background);
  EXPECT_EQ(read_fields(R"({"service_tier":"scale"})").service_class, ServiceClass::standard);
}

TEST(GenerationFields, StopsThatAreEmptyDoNotCount) {
  EXPECT_TRUE(read_fields(R"({"stop":""})").stop.empty());
  EXPECT_EQ(read_fields(R"({"stop":["","x",""]})").stop, std::vector<std::string>{"x"});
}

TEST(GenerationFields, TheOtherFieldsReachTheDraft) {
  const RequestDraft draft = read_fields(R"({"stop":"x","stop_token_ids":[4,5],"ignore_eos":true,"n_probs":3,
      "post_sampling_probs":true,"timings_per_token":true,"return_progress":true,"cache_prompt":false,
      "timeout_ms":9,"t_max_prompt_ms":8,"t_max_predict_ms":7,"ttft_timeout_ms":6,
      "dry_sequence_breakers":["."],"seed":5,"logit_bias":[["yes",2],[3,false]],"n_keep":-1})");
  EXPECT_EQ(draft.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(draft.stop_tokens, (std::vector<Token>{4, 5}));
  EXPECT_TRUE(draft.sampling.ignore_eos);
  EXPECT_EQ(draft.sampling.chances, 3);
  EXPECT_TRUE(draft.sampling.chances_after);
  EXPECT_TRUE(draft.tell_usage);
  EXPECT_TRUE(draft.tell_progress);
  EXPECT_FALSE(draft.use_cache);
  EXPECT_EQ(draft.timeout_ms, 9);
  EXPECT_EQ(draft.prompt_ms, 8);
  EXPECT_EQ(draft.predict_ms, 7);
  EXPECT_EQ(draft.ttft_ms, 6);
  EXPECT_EQ(draft.sampling.dry_sequence_breakers, std::vector<std::string>{"."});
  EXPECT_EQ(draft.sampling.seed, 5u);
  ASSERT_EQ(draft.text_bias.size(), 1u);
  EXPECT_EQ(draft.text_bias[0].first, "yes");
  EXPECT_EQ(draft.sampling.logit_bias.size(), 1u);
}

TEST(GenerationFields, ALimitOfMinusOneIsNone) {
  EXPECT_FALSE(read_fields(R"({"t_max_prompt_ms":-1})").prompt_ms);
  EXPECT_FALSE(read_fields(R"({"t_max_predict_ms":-1})").predict_ms);
  EXPECT_FALSE(read_fields(R"({"ttft_timeout_ms":-1})").ttft_ms);
}

}  // namespace
}  // namespace chasqui
