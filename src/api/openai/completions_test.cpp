// Bodies of the generating routes, from JSON to a valid request or to an error that names the field. The simulated
// model stands behind them; no request is ever submitted.
#include "api/openai/completions.h"

#include <cmath>
#include <set>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/core/errors.h"
#include "api/core/fake_node.h"
#include "api/llama_server/infill.h"
#include "base/limits.h"

namespace chasqui {
namespace {

class PrepareTest : public ::testing::Test {
 protected:
  FakeNode fake_;
  const ServedModel& served_ = fake_.served;
  const LoadedModel& model_ = fake_.model;
  const RequestLimits& limits_ = fake_.limits;
  Caller caller_;
};

TEST_F(PrepareTest, AChatBecomesARequest) {
  const auto answer = prepare_chat(served_, caller_, R"({"messages":[{"role":"system","content":"Be brief."},
      {"role":"user","content":[{"type":"text","text":"Hello"},{"type":"text","text":"there"}]}],
      "stream":true,"temperature":0,"top_k":5,"max_tokens":7,"seed":11,"stop":["a","b"],"priority":"background",
      "logit_bias":{"3":-100},"timeout_ms":1000})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->stream);
  const Request& request = *answer->request;
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_EQ(request.sampling.top_k, 5);
  EXPECT_EQ(request.sampling.seed, 11u);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.service_class, ServiceClass::background);
  ASSERT_EQ(request.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(request.sampling.logit_bias[0].token, 3);
  EXPECT_EQ(request.deadline - request.arrival, milliseconds(1000));
  EXPECT_EQ(detokenize(*model_.tokenizer, request.prompt),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello\nthere<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(PrepareTest, BiasesAreCountedBeforeTheyAreRead) {
  const auto field_of = [this](const boost::json::value& bias) {
    const auto answer =
        prepare_completion(served_, caller_, R"({"prompt":"x","logit_bias":)" + boost::json::serialize(bias) + "}");
    return answer ? std::string() : answer.error().field;
  };
  boost::json::array many(kSizeLimit<"logit_bias">, boost::json::array{1, 1});
  EXPECT_EQ(field_of(many), "");
  many.push_back("and what is wrong with it is not looked at");
  EXPECT_EQ(field_of(many), "logit_bias");
  EXPECT_EQ(field_of(boost::json::object{{std::string(kSizeLimit<"logit_bias_bytes"> + 1, 'a'), 1}}), "logit_bias");
}

TEST_F(PrepareTest, EveryMistakeNamesItsField) {
  struct Case {
    const char* fields;  // added to a valid chat
    const char* field;
  };
  const Case cases[] = {
      {R"("messages":[])", "messages"},
      {R"("messages":"hi")", "messages"},
      {R"("messages":[3])", "messages[0]"},
      {R"("messages":[{"role":"the boss","content":"x"}])", "messages[0].role"},
      {R"("messages":[{"content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":"user"}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":3}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":[{"type":"image_url"}]}])", "messages[0].content[0].image_url"},
      {R"("messages":[{"role":"user","content":[{"type":"video_url"}]}])", "messages[0].content[0].type"},
      {R"("temperature":-1)", "temperature"},
      {R"("temperature":"hot")", "temperature"},
      {R"("top_p":1.5)", "top_p"},
      {R"("top_k":99999999999)", "top_k"},
      {R"("max_tokens":-2)", "max_tokens"},
      {R"("max_tokens":1.5)", "max_tokens"},
      {R"("max_completion_tokens":99999999999)", "max_tokens"},
      {R"("stop":[1])", "stop"},
      {R"("stop":{})", "stop"},
      {R"("logit_bias":{"":1})", "logit_bias"},
      {R"("logit_bias":{"7":"much"})", "logit_bias"},
      {R"("logit_bias":[[99999,1]])", "logit_bias"},
      {R"("logit_bias":[1])", "logit_bias"},
      {R"("n":0)", "n"},
      {R"("n":17)", "n"},
      {R"("logprobs":3)", "logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"a"}})", "response_format.json_schema.schema"},
      {R"("json_schema":{"type":"object","minProperties":-1})", "json_schema.minProperties"},
      {R"("json_schema":{"type":"object"},"grammar":"root ::= \"a\"")", "grammar"},
      {R"("samplers":["top_k","top_k"])", "samplers"},
      {R"("samplers":"kq")", "samplers"},
      {R"("mirostat":3)", "mirostat"},
      {R"("typical_p":2)", "typical_p"},
      {R"("stop_token_ids":[-1])", "stop_token_ids"},
      {R"("stop_token_ids":[99999])", "stop_token_ids"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("t_max_predict_ms":0)", "t_max_predict_ms"},
      {R"("n_indent":-1)", "n_indent"},
      {R"("n_keep":-2)", "n_keep"},
      {R"("dry_sequence_breakers":[""])", "dry_sequence_breakers"},
      {R"("echo":true)", "echo"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("priority":"urgent")", "priority"},
      {R"("service_tier":7)", "service_tier"},
      {R"("timeout_ms":0)", "timeout_ms"},
      {R"("tools":[{"type":7}])", "tools[0].type"},
      {R"("tools":[{"type":"function"}])", "tools[0].function"},
      {R"("continue_final_message":true)", "continue_final_message"},
  };
  for (const Case& c : cases) {
    // The last of two equal keys wins, so `messages` can be replaced too.
    const std::string body = R"({"messages":[{"role":"user","content":"x"}],)" + std::string(c.fields) + "}";
    const auto answer = prepare_chat(served_, caller_, body);
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().field, c.field) << body << " → " << answer.error().message;
    EXPECT_EQ(error_row(answer.error().code).status, 400);
    EXPECT_FALSE(answer.error().message.empty());
  }
}

TEST_F(PrepareTest, WhatAClientLeavesOutOrSwitchesOffIsNoMistake) {
  const auto answer = prepare_chat(served_, caller_, R"({"messages":[{"role":"user","content":"x"}],"logprobs":false,
      "n":1,"tools":[],"response_format":{"type":"text"},"stop":null,"user":"u","metadata":{},"model":"gpt-x"})");
  EXPECT_TRUE(answer) << answer.error().message;
}

TEST_F(PrepareTest, APromptLongerThanTheContextSaysBothLengths) {
  std::string prompt;
  for (int i = 0; i < 2000; ++i) prompt += "word ";
  const auto answer = prepare_completion(served_, caller_, R"({"prompt":")" + prompt + R"("})");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::context_too_long);
  EXPECT_NE(answer.error().message.find(std::to_string(limits_.context)), std::string::npos);
}

TEST_F(PrepareTest, APromptThatCannotFitIsRefusedUnread) {
  const std::size_t bytes = model_.tokenizer->piece_bytes_max() * static_cast<std::size_t>(limits_.context) + 1;
  const auto answer = prepare_generate(served_, caller_, R"({"prompt":")" + std::string(bytes, 'x') + R"("})");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::context_too_long);
  EXPECT_NE(answer.error().message.find(std::to_string(bytes)), std::string::npos);
}

TEST_F(PrepareTest, ACompletionTakesTextOrTokens) {
  const auto text = prepare_completion(served_, caller_, R"({"prompt":"abc"})");
  ASSERT_TRUE(text);
  const auto wrapped = prepare_completion(served_, caller_, R"({"prompt":["abc"]})");
  ASSERT_TRUE(wrapped);
  EXPECT_EQ(text->request->prompt, wrapped->request->prompt);
  const auto tokens = prepare_completion(served_, caller_, R"({"prompt":[1,2,3]})");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->request->prompt, (std::vector<Token>{1, 2, 3}));
  const auto mixed = prepare_completion(served_, caller_, R"({"prompt":[1,"abc",3]})");
  ASSERT_TRUE(mixed);
  EXPECT_EQ(mixed->request->prompt, (std::vector<Token>{1, 'a', 'b', 'c', 3}));
  const auto object = prepare_completion(served_, caller_, R"({"prompt":{"prompt_string":"abc"}})");
  ASSERT_TRUE(object);
  EXPECT_EQ(object->request->prompt, text->request->prompt);
  for (const char* bad : {R"({"prompt":3})", R"({"prompt":[-1]})", R"({"prompt":[1,999999]})", R"({"prompt":["a",{}]})",
                          R"({"prompt":[[]]})", R"({"prompt":[]})", R"({"prompt":""})", R"({})"}) {
    const auto answer = prepare_completion(served_, caller_, bad);
    ASSERT_FALSE(answer) << bad;
    EXPECT_EQ(answer.error().field, "prompt") << bad;
  }
}

TEST_F(PrepareTest, SeveralAnswersAreRequestsThatDifferInTheirSeeds) {
  const auto answer = prepare_completion(served_, caller_, R"({"prompt":["a","bc"],"n":2,"best_of":3,"seed":7})");
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->others.size(), 5u);
  EXPECT_EQ(answer->request->sampling.seed, 7u);
  EXPECT_EQ(answer->others[1]->sampling.seed, 9u);
  EXPECT_EQ(answer->others[1]->prompt, answer->request->prompt);
  EXPECT_EQ(answer->others[2]->sampling.seed, 7u);
  EXPECT_NE(answer->others[2]->prompt, answer->request->prompt);
  EXPECT_EQ(answer->request->sampling.chances, 0);  // the best are told by how likely they are
  std::set<std::uint64_t> ids{answer->request->id.value};
  for (const RequestPtr& other : answer->others) EXPECT_TRUE(ids.insert(other->id.value).second);
}

TEST_F(PrepareTest, TextsInLogitBiasAreTheirTokens) {
  const auto answer = prepare_completion(served_, caller_, R"({"prompt":"x","logit_bias":{"ab":-2.5}})");
  ASSERT_TRUE(answer) << answer.error().message;
  const auto tokens = model_.tokenizer->tokenize("ab", AddSpecial::no, ParseSpecial::yes);
  ASSERT_EQ(answer->request->sampling.logit_bias.size(), tokens.size());
  EXPECT_EQ(answer->request->sampling.logit_bias[0].token, tokens[0]);
  EXPECT_EQ(answer->request->sampling.logit_bias[0].bias, -2.5f);
}

TEST_F(PrepareTest, AGapIsFilledInOnlyByModelsThatHaveTokensForIt) {
  const char* body = R"({"input_prefix":"ab","input_suffix":"cd","prompt":"x",
                         "input_extra":[{"filename":"f","text":"t"}]})";
  const auto refused = prepare_infill(served_, caller_, body);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "input_suffix");
  fake_.model.info.infill = {.prefix = 256, .suffix = 257, .middle = 258, .repository = -1, .file = 255};
  const auto answer = prepare_infill(served_, caller_, body);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->request->prompt, (std::vector<Token>{255, 'f', '\n', 't', 255, 'f', 'i', 'l', 'e', 'n', 'a',
                                                         'm', 'e', '\n', 256, 'a', 'b', 'x', 257, 'c', 'd', 258}));
  const auto suffix = prepare_completion(served_, caller_, R"({"prompt":"ab","suffix":"cd"})");
  ASSERT_TRUE(suffix) << suffix.error().message;
  EXPECT_EQ(suffix->request->prompt, (std::vector<Token>{256, 'a', 'b', 257, 'c', 'd', 258}));
  for (const char* bad :
       {R"({"input_suffix":"a"})", R"({"input_prefix":"a"})", R"({"input_prefix":1,"input_suffix":"a"})",
        R"({"input_prefix":"a","input_suffix":"b","prompt":3})",
        R"({"input_prefix":"a","input_suffix":"b","input_extra":[3]})"}) {
    EXPECT_FALSE(prepare_infill(served_, caller_, bad)) << bad;
  }
}

TEST_F(PrepareTest, GenerateIsGreedyAndStreamsUnlessToldOtherwise) {
  const auto answer = prepare_generate(served_, caller_, R"({"prompt":"abc","rep_penalty":1.5})");
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->stream);
  EXPECT_EQ(answer->request->sampling.temperature, 0);
  EXPECT_EQ(answer->request->max_tokens, 64);
  EXPECT_FLOAT_EQ(answer->request->sampling.repeat_penalty, 1.5f);
}

TEST_F(PrepareTest, AKeySaysWhoAsksAndHowUrgentItMayBe) {
  caller_.tenant = {7, 2.5};
  const auto class_of = [this](const std::string& fields) {
    const auto answer = prepare_chat(served_, caller_, R"({"messages":[{"role":"user","content":"x"}])" + fields + "}");
    EXPECT_TRUE(answer);
    EXPECT_EQ(answer->request->tenant.id, 7u);
    EXPECT_EQ(answer->request->tenant.weight, 2.5);
    return answer->request->service_class;
  };
  EXPECT_EQ(class_of(""), ServiceClass::standard);
  EXPECT_EQ(class_of(R"(,"priority":"interactive")"), ServiceClass::interactive);
  EXPECT_EQ(class_of(R"(,"service_tier":"priority")"), ServiceClass::interactive);
  EXPECT_EQ(class_of(R"(,"service_tier":"flex")"), ServiceClass::background);
  EXPECT_EQ(class_of(R"(,"service_tier":"auto")"), ServiceClass::standard);
  caller_.service_class = caller_.most_urgent = ServiceClass::background;
  EXPECT_EQ(class_of(""), ServiceClass::background);
  EXPECT_EQ(class_of(R"(,"service_tier":"default")"), ServiceClass::background);
  EXPECT_EQ(class_of(R"(,"priority":"interactive")"), ServiceClass::background);
  caller_.service_class = caller_.most_urgent = ServiceClass::interactive;
  EXPECT_EQ(class_of(""), ServiceClass::interactive);
  EXPECT_EQ(class_of(R"(,"priority":"background")"), ServiceClass::background);
}

}  // namespace
}  // namespace chasqui
