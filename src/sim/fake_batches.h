// The bench of the tests of the checked model: batches that a test writes by hand, and the first fault that they show.
// One thread.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "sim/checked_model.h"

namespace chasqui {

class CheckedModelTest : public testing::Test {
 protected:
  static constexpr KvLedger::Layout kLayout{4, 400, 100, false};

  explicit CheckedModelTest(TokenCount block = 0) : model_(kLayout, 64, block, lives_, faults_) {}

  SimRequest& add(TokenCount prompt, TokenCount output) {
    SimRequest& life = lives_.take();
    life.serial = ++serials_;
    life.plan.prompt = prompt;
    life.plan.output = output;
    RequestDraft draft;
    draft.prompt = test_prompt(prompt, life.serial);
    draft.max_tokens = output;
    draft.sampling.seed = 1;
    life.request = test_request(lives_.new_id(life).value, std::move(draft));
    for (const Token token : life.request->prompt) life.history = extend_history(life.history, token);
    life.known = prompt;
    life.accepted = true;
    return life;
  }

  void end(SimRequest& life) {
    model_.ended(life);
    lives_.give_back(life);
  }

  // Rows `from` … of what the request is known to hold; the token after the prompt is the last sampled one.
  void part(const SimRequest& life, std::int32_t slot, TokenCount from, TokenCount rows) {
    const auto first = static_cast<std::int32_t>(batch_.rows.size());
    const bool samples = from + rows == life.known;
    for (TokenCount p = from; p < from + rows; ++p) {
      const bool prompt = p < life.plan.prompt;
      const Token token = prompt ? life.request->prompt[static_cast<std::size_t>(p)]
                                 : generated_[life.place][static_cast<std::size_t>(p - life.plan.prompt)];
      batch_.rows.push_back({token, p, SlotId{slot}, samples && p + 1 == from + rows});
    }
    batch_.parts.push_back({life.request.get(), SlotId{slot}, first, rows, samples});
  }

  // Runs what was put into the batch; gives the first fault.
  std::string run(Batch::Kind kind = Batch::Kind::prefill) {
    batch_.kind = kind;
    model_.run(batch_, DecodeStatus::ok, ++step_, result_);
    for (const Sample& sample : result_.samples) {
      generated_[lives_.find(sample.request)->place].push_back(sample.token);
    }
    batch_.clear();
    const std::string fault = faults_.any() ? faults_.lines().front() : "";
    return fault.substr(std::min(fault.find("us: "), fault.size()));
  }

  // Copies a slot out in a step of its own.
  KvSnapshotPtr save(std::int32_t slot, TokenCount tokens) {
    batch_.saves = {{SlotId{slot}, tokens}};
    EXPECT_EQ(run(), "");
    return result_.snapshots.at(0);
  }
  void restore(const SimRequest& life, std::int32_t slot, KvSnapshotPtr snapshot, TokenCount keep) {
    batch_.restores.push_back({life.request->id, SlotId{slot}, std::move(snapshot), keep});
  }

  Faults faults_;
  SimRequestTable lives_;
  CheckedModel model_;
  Batch batch_;
  BatchResult result_;
  std::vector<Token> generated_[8];
  std::uint64_t serials_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace chasqui
