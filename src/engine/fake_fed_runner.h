// A runner over one slot of a SimModel that is fed by hand: the fixture of tests that say what is in each step. One
// thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "core/put_off.h"
#include "engine/runner.h"
#include "model/sim_model.h"

namespace chasqui {

class FedRunner : public testing::Test {
 protected:
  RequestDraft asking(std::string_view prompt) const {
    RequestDraft draft;
    draft.prompt = tokenizer_->tokenize(prompt, AddSpecial::no, ParseSpecial::yes);
    draft.sampling.temperature = 0;
    draft.sampling.seed = 7;
    return draft;
  }

  // The next steps are of another request.
  void begin(RequestDraft draft) {
    RequestLimits limits;
    limits.vocabulary = tokenizer_->vocabulary();
    limits.context = 512;
    request_ = test_request(++ids_, std::move(draft), limits);
    tokens_ = request_->prompt;
    tokens_.insert(tokens_.end(), request_->begun.begin(), request_->begun.end());
    computed_ = 0;
    text_.clear();
    forced_ = 0;
  }

  // All rows that there are, these draft tokens, and rows of no use behind them; how many tokens that brought.
  std::size_t step(const std::vector<Token>& draft_tokens = {}, std::int32_t padding = 0) {
    batch_.clear();
    batch_.kind = computed_ == 0 ? Batch::Kind::prefill : Batch::Kind::decode;
    if (computed_ == 0) batch_.trims.push_back(SlotId{0});
    const auto rows = static_cast<TokenCount>(tokens_.size()) - computed_;
    TokenCount position = computed_;
    for (; position < computed_ + rows; ++position) {
      batch_.rows.push_back({tokens_[static_cast<std::size_t>(position)], position, SlotId{0}, false});
    }
    batch_.rows.back().output = true;
    for (const Token draft_token : draft_tokens) batch_.rows.push_back({draft_token, position++, SlotId{0}, true});
    for (std::int32_t i = 0; i < padding; ++i) batch_.rows.push_back({0, position++, SlotId{0}, false});
    batch_.parts.push_back(
        {request_.get(), SlotId{0}, 0, rows, true, static_cast<std::int32_t>(draft_tokens.size()), padding});
    runner_.run(batch_, result_);
    const TokenCount back = result_.put_off.empty() ? 0 : rows_put_off(batch_.parts.back());
    if (result_.status == DecodeStatus::ok) computed_ += rows - back;
    bool before = true;
    for (const Sample& sample : result_.samples) {
      EXPECT_EQ(sample.request, request_->id);
      EXPECT_TRUE(before || (sample.forced && !sample.computed))
          << "behind what has no row there are forced ones alone";
      before = sample.computed;
      tokens_.push_back(sample.token);
      text_ += sample.text;
      forced_ += sample.forced ? 1 : 0;
      computed_ += sample.computed ? 1 : 0;
    }
    EXPECT_EQ(model_.history(SlotId{0}).size(), static_cast<std::size_t>(computed_))
        << "rejected draft tokens are forgotten";
    return result_.samples.size();
  }

  // To the end of the answer; in how many steps.
  int say_all() {
    int steps = 0;
    const auto goes_on = [this] { return computed_ == 0 || result_.samples.empty() || !result_.samples.back().ends(); };
    for (; steps < 100 && goes_on(); ++steps) step();
    text_ += runner_.close(request_->id);
    return steps;
  }

  std::vector<Token> said() const {
    return {tokens_.begin() + static_cast<std::ptrdiff_t>(request_->prompt.size()), tokens_.end()};
  }

  std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<const SimTokenizer>();
  ManualClock clock_;
  SimModel model_{tokenizer_,
                  {.slots = 2, .cells = 1024, .rows_max = 256, .outputs_max = 16},
                  {.step = milliseconds(3), .spend = [this](Duration d) { clock_.advance(d); }}};
  Runner runner_{model_, *tokenizer_, clock_};
  Batch batch_;
  BatchResult result_;
  RequestPtr request_;
  std::vector<Token> tokens_;  // the prompt, and what was said
  TokenCount computed_ = 0;    // of them
  std::string text_;
  int forced_ = 0;
  std::uint64_t ids_ = 0;
};

}  // namespace chasqui
