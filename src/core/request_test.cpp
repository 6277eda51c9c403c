#include "core/request.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

RequestDraft draft_of(TokenCount prompt) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt);
  return draft;
}

Result<RequestPtr> make(RequestDraft draft, const RequestLimits& limits = test_limits(), TimePoint now = {}) {
  return make_request(RequestId{1}, std::move(draft), limits, now);
}

struct NumberCase {
  const char* field;
  std::function<void(RequestDraft&, double)> set;
  std::vector<double> good;
  std::vector<double> bad;
  const char* allowed;  // what the message must say
};

std::vector<NumberCase> number_cases() {
  const auto f = [](float SamplingParams::*member) {
    return [member](RequestDraft& d, double v) { d.sampling.*member = static_cast<float>(v); };
  };
  const auto i = [](std::int32_t SamplingParams::*member) {
    return [member](RequestDraft& d, double v) { d.sampling.*member = static_cast<std::int32_t>(v); };
  };
  using P = SamplingParams;
  constexpr double kMin = std::numeric_limits<std::int32_t>::min(), kMax = std::numeric_limits<std::int32_t>::max();
  return {
      {"temperature", f(&P::temperature), {0, 1e-10, 0.8, 100}, {-0.001, 100.1, 1e30, kNan, kInfinity}, "0 and 100"},
      {"top_k", i(&P::top_k), {-1, 0, 1, 1e6}, {-2, 1e6 + 1, kMin, kMax}, "-1 and 1000000"},
      {"top_p", f(&P::top_p), {0, 0.5, 1}, {-0.01, 1.01, kNan, kInfinity, -kInfinity}, "0 and 1"},
      {"min_p", f(&P::min_p), {0, 0.05, 1}, {-0.01, 1.01, kNan, kInfinity}, "0 and 1"},
      {"min_keep", i(&P::min_keep), {0, 5, 1e6}, {-1, 1e6 + 1, kMin, kMax}, "0 and 1000000"},
      {"repeat_last_n", i(&P::repeat_last_n), {-1, 0, 64, 1e6}, {-2, 1e6 + 1, kMin, kMax}, "-1 and 1000000"},
      {"repeat_penalty", f(&P::repeat_penalty), {0.02, 1, 100}, {0, -1, 101, kNan, kInfinity}, "0.01 and 100"},
      {"frequency_penalty", f(&P::frequency_penalty), {-100, 0, 100}, {-101, 101, kNan, -kInfinity}, "-100 and 100"},
      {"presence_penalty", f(&P::presence_penalty), {-100, 0, 100}, {-101, 101, kNan, kInfinity}, "-100 and 100"},
      {"max_tokens",
       [](RequestDraft& d, double v) { d.max_tokens = static_cast<std::int64_t>(v); },
       {-1, 0, 1, 1 << 30},
       {-2, 1e18, -1e18, (1 << 30) + 1.0},
       "-1 (no limit) and 1073741824"},
      {"id_slot",
       [](RequestDraft& d, double v) { d.slot_label = static_cast<std::int32_t>(v); },
       {-1, 0, 15},
       {-2, 16, kMax},
       "between 0 and 15, or -1"},
      {"timeout_ms",
       [](RequestDraft& d, double v) { d.timeout_ms = static_cast<std::int64_t>(v); },
       {1, 60'000, 86'400'000},
       {0, -1, 86'400'001, 1e18},
       "1 and 86400000"},
      {"ttft_timeout_ms",
       [](RequestDraft& d, double v) { d.ttft_ms = static_cast<std::int64_t>(v); },
       {1, 60'000, 86'400'000},
       {0, -1, 86'400'001, 1e18},
       "1 and 86400000"},
  };
}

TEST(MakeRequest, EveryNumberHasLimitsAndTheErrorNamesFieldAndLimits) {
  for (const NumberCase& c : number_cases()) {
    for (const double value : c.good) {
      RequestDraft draft = draft_of(3);
      c.set(draft, value);
      EXPECT_TRUE(make(draft).has_value()) << c.field << ' ' << value;
    }
    for (const double value : c.bad) {
      RequestDraft draft = draft_of(3);
      c.set(draft, value);
      const auto result = make(draft);
      ASSERT_FALSE(result.has_value()) << c.field << ' ' << value;
      EXPECT_EQ(result.error().code, ErrorCode::invalid_request) << c.field;
      EXPECT_EQ(result.error().field, c.field);
      EXPECT_NE(result.error().message.find(c.field), std::string::npos) << result.error().message;
      EXPECT_NE(result.error().message.find(c.allowed), std::string::npos) << result.error().message;
    }
  }
}

TEST(MakeRequest, PromptTokensMustBeOfTheVocabulary) {
  for (const Token bad : {-1, 1000, std::numeric_limits<Token>::min(), std::numeric_limits<Token>::max()}) {
    RequestDraft draft = draft_of(3);
    draft.prompt[1] = bad;
    const auto result = make(draft);
    ASSERT_FALSE(result.has_value()) << bad;
    EXPECT_EQ(result.error().field, "prompt");
    EXPECT_NE(result.error().message.find("0 and 999"), std::string::npos);
  }
  RequestDraft border = draft_of(2);
  border.prompt = {0, 999};
  EXPECT_TRUE(make(border).has_value());
}

TEST(MakeRequest, PromptMustHoldATokenAndLeaveRoomForOne) {
  const auto empty = make(draft_of(0));
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(empty.error().field, "prompt");

  const auto longest = make(draft_of(99));
  ASSERT_TRUE(longest.has_value());
  EXPECT_EQ((*longest)->max_tokens, 1);

  for (const TokenCount length : {100, 101, 5000}) {
    const auto result = make(draft_of(length));
    ASSERT_FALSE(result.has_value()) << length;
    EXPECT_EQ(result.error().code, ErrorCode::context_too_long);
    EXPECT_NE(result.error().message.find(std::to_string(length)), std::string::npos);
    EXPECT_NE(result.error().message.find("100"), std::string::npos) << "says how much is allowed";
  }
}

TEST(MakeRequest, MaxTokensIsCutToWhatTheContextLeaves) {
  struct Case {
    std::optional<std::int64_t> asked;
    TokenCount given;
    bool limited;
  };
  const Case cases[] = {{std::nullopt, 90, true}, {-1, 90, true},  {0, 0, false},  {1, 1, false},
                        {89, 89, false},          {90, 90, false}, {91, 90, true}, {1 << 30, 90, true}};
  for (const Case& c : cases) {
    RequestDraft draft = draft_of(10);
    draft.max_tokens = c.asked;
    const auto result = make(draft);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ((*result)->max_tokens, c.given) << c.asked.value_or(-99);
    EXPECT_EQ((*result)->limited_by_context, c.limited) << c.asked.value_or(-99);
  }
}

TEST(MakeRequest, AShiftedContextKeepsAFewTokensLessThanItHas) {
  RequestLimits limits = test_limits();
  limits.shifts = true;
  limits.keep_default = 5;
  limits.begin_tokens = 1;
  const auto kept = [&limits](std::optional<std::int64_t> keep) {
    RequestDraft draft = draft_of(10);
    draft.keep = keep;
    return (*make(std::move(draft), limits))->keep;
  };
  EXPECT_EQ(kept(std::nullopt), 6) << "and what each context begins with";
  EXPECT_EQ(kept(0), 1);
  EXPECT_EQ(kept(-1), 11);
  EXPECT_EQ(kept(95), 96);
  EXPECT_EQ(kept(1000), 96);
  EXPECT_EQ(kept(std::numeric_limits<std::int64_t>::max()), 96);
  EXPECT_EQ((*make(draft_of(10), limits))->shift_at, 100);
  limits.context = 4;
  EXPECT_EQ((*make(draft_of(3), limits))->shift_at, 0) << "too few to shift";
}

// All steps wait for a shift, so none asks for one in each.
TEST(MakeRequest, AContextIsNotShiftedForAFewTokens) {
  RequestLimits limits = test_limits();
  limits.shifts = true;
  limits.context = 6400;
  const auto gone = [&limits](std::optional<std::int64_t> discard) {
    RequestDraft draft = draft_of(10);
    draft.discard = discard;
    return (*make(std::move(draft), limits))->discard;
  };
  EXPECT_EQ(gone(std::nullopt), 0) << "half of them";
  EXPECT_EQ(gone(0), 0);
  EXPECT_EQ(gone(1), 100);
  EXPECT_EQ(gone(101), 101);
  EXPECT_EQ(gone(std::numeric_limits<std::int64_t>::max()), 6400);
}

TEST(MakeRequest, TheServersDefaultHoldsWhereTheClientSaysNothing) {
  RequestLimits limits = test_limits();
  limits.max_tokens_default = 16;
  limits.timeout_default = seconds(10);
  const TimePoint now{seconds(1000)};
  const auto silent = make(draft_of(10), limits, now);
  EXPECT_EQ((*silent)->max_tokens, 16);
  EXPECT_FALSE((*silent)->limited_by_context);
  EXPECT_EQ((*silent)->deadline, now + seconds(10));
  EXPECT_EQ((*silent)->arrival, now);

  RequestDraft draft = draft_of(10);
  draft.max_tokens = -1;
  draft.timeout_ms = 250;
  const auto outspoken = make(draft, limits, now);
  EXPECT_EQ((*outspoken)->max_tokens, 90);
  EXPECT_EQ((*outspoken)->deadline, now + milliseconds(250));
  EXPECT_EQ((*make(draft_of(1)))->deadline, kNever);
}

TEST(MakeRequest, PatienceCountsFromArrival) {
  const TimePoint now(seconds(100));
  RequestLimits limits = test_limits();
  EXPECT_EQ((*make(draft_of(1), limits, now))->start_deadline, kNever);
  limits.queue_timeout = seconds(600);
  RequestDraft draft = draft_of(1);
  draft.ttft_ms = 250;
  const auto request = make(std::move(draft), limits, now);
  EXPECT_EQ((*request)->start_deadline, now + seconds(600));
  EXPECT_EQ((*request)->first_token_deadline, now + milliseconds(250));
  EXPECT_EQ((*request)->deadline, kNever);
}

TEST(MakeRequest, StopStringsAreCountedMeasuredAndMustBeText) {
  const auto with_stops = [](std::vector<std::string> stops) {
    RequestDraft draft = draft_of(3);
    draft.stop = std::move(stops);
    return make(std::move(draft));
  };
  EXPECT_TRUE(with_stops(std::vector<std::string>(64, "x")).has_value());
  EXPECT_TRUE(with_stops({std::string(2048, 'x'), "\xC3\xB1"}).has_value());

  const std::vector<std::pair<std::vector<std::string>, const char*>> bad = {
      {std::vector<std::string>(65, "x"), "at most 64"},
      {{"ok", ""}, "not be empty"},
      {{std::string(2049, 'x')}, "at most 2048 bytes"},
      {{"\xFF"}, "UTF-8"},  // could never match, since what is sent is always UTF-8
  };
  for (const auto& [stops, message] : bad) {
    const auto result = with_stops(stops);
    ASSERT_FALSE(result.has_value()) << message;
    EXPECT_EQ(result.error().field, "stop");
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
  }
}

TEST(MakeRequest, LogitBiasIsCountedAndItsTokensAndValuesAreChecked) {
  const auto with_bias = [](std::vector<LogitBias> bias) {
    RequestDraft draft = draft_of(3);
    draft.sampling.logit_bias = std::move(bias);
    return make(std::move(draft));
  };
  EXPECT_TRUE(with_bias(std::vector<LogitBias>(1024, {5, 1.0f})).has_value());
  EXPECT_TRUE(with_bias({{0, -kInfinity}, {999, kInfinity}}).has_value()) << "a ban is a bias of -infinity";
  for (const std::vector<LogitBias>& bias :
       {std::vector<LogitBias>(1025, {5, 1.0f}), {{-1, 1.0f}}, {{1000, 1.0f}}, {{1, 0.0f}, {2, kNan}}}) {
    const auto result = with_bias(bias);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().field, "logit_bias");
    EXPECT_EQ(result.error().code, ErrorCode::invalid_request);
  }
}

TEST(MakeRequest, KeepsWhatItWasGivenAndAlwaysHasASeed) {
  RequestDraft draft = draft_of(3);
  draft.sampling.seed = 42;
  draft.stop = {"END"};
  draft.service_class = ServiceClass::background;
  draft.tenant = {7, 2.5};
  draft.special_pieces = true;
  const auto request = *make(draft);
  EXPECT_EQ(request->id, RequestId{1});
  EXPECT_EQ(request->prompt, draft.prompt);
  EXPECT_EQ(request->sampling.seed, 42u);
  EXPECT_EQ(request->stop, draft.stop);
  EXPECT_EQ(request->service_class, ServiceClass::background);
  EXPECT_EQ(request->tenant.id, 7u);
  EXPECT_EQ(request->tenant.weight, 2.5);
  EXPECT_TRUE(request->special_pieces);

  const auto first = *make(draft_of(3)), second = *make(draft_of(3)), third = *make(draft_of(3));
  ASSERT_TRUE(first->sampling.seed.has_value());
  EXPECT_FALSE(first->sampling.seed == second->sampling.seed && second->sampling.seed == third->sampling.seed)
      << "seeds that are not given are random";
}

}  // namespace
}  // namespace chasqui
