// Rows of a step that several threads sample: the answers are those of one thread.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "engine/runner.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

// Its logits are noise, the same for the same row of the same step.
class NoiseModel final : public Model {
 public:
  NoiseModel(TokenCount vocabulary, std::int32_t slots, std::size_t threads) : threads_(threads) {
    shape_.vocabulary = vocabulary;
    shape_.slots = shape_.rows_max = shape_.outputs_max = slots;
    logits_.resize(static_cast<std::size_t>(vocabulary) * static_cast<std::size_t>(slots));
  }
  const ModelShape& shape() const override { return shape_; }
  DecodeStatus decode(const Batch&) override {
    std::mt19937 generator(++steps_);
    std::normal_distribution<float> noise(0, 3);
    for (float& logit : logits_) logit = noise(generator);
    return DecodeStatus::ok;
  }
  std::span<float> logits(std::int32_t row) override {
    const auto width = static_cast<std::size_t>(shape_.vocabulary);
    return std::span(logits_).subspan(static_cast<std::size_t>(row) * width, width);
  }
  std::size_t row_threads() const override { return threads_; }
  void for_each_row(std::size_t count, RowJob& job) override {
    ++shared_;
    for (std::size_t row = count; row-- > 0;) job.run(row, row % threads_);
  }
  void trim(SlotId, TokenCount) override {}
  void move(SlotId, SlotId) override {}
  void exchange(SlotId, SlotId) override {}
  KvSnapshotPtr copy_out(SlotId, TokenCount, TokenCount) override { return nullptr; }
  bool restore(SlotId, const KvSnapshot&, TokenCount) override { return false; }
  bool restore_piece(SlotId, const KvSnapshot&, TokenCount, TokenCount, TokenCount) override { return false; }
  bool copy_piece(SlotId, SlotId, TokenCount, TokenCount, TokenCount) override { return false; }
  void request_abort() override {}
  void clear_abort() override {}

  int shared() const { return shared_; }

 private:
  ModelShape shape_;
  const std::size_t threads_;
  std::vector<float> logits_;
  unsigned steps_ = 0;
  int shared_ = 0;
};

// Three steps of so many sequences: all tokens and what was told of them.
std::vector<double> said(std::size_t threads, std::int32_t sequences, bool shares) {
  const SimTokenizer tokenizer;
  ManualClock clock;
  NoiseModel model(tokenizer.vocabulary(), sequences, threads);
  Runner runner(model, tokenizer, clock);
  RequestLimits limits;
  limits.vocabulary = tokenizer.vocabulary();
  limits.context = 512;
  std::vector<RequestPtr> requests;
  for (std::int32_t i = 0; i < sequences; ++i) {
    RequestDraft draft;
    draft.prompt = {1};
    draft.sampling.seed = static_cast<std::uint32_t>(i);
    if (i % 3 == 1) draft.sampling.chances = 4;
    if (i % 3 == 2) draft.sampling.top_k = 0;
    requests.push_back(test_request(static_cast<std::uint64_t>(i) + 1, std::move(draft), limits));
  }
  std::vector<double> out;
  BatchResult result;
  for (TokenCount step = 0; step < 3; ++step) {
    Batch batch;
    for (std::int32_t i = 0; i < sequences; ++i) {
      batch.rows.push_back({1, step, SlotId{i}, true});
      batch.parts.push_back({requests[static_cast<std::size_t>(i)].get(), SlotId{i}, i, 1, true});
    }
    runner.run(batch, result);
    for (const Sample& sample : result.samples) {
      out.push_back(sample.token);
      for (const TokenChance& chance : sample.chances) out.push_back(static_cast<double>(chance.logprob));
    }
  }
  EXPECT_EQ(model.shared(), shares ? 3 : 0);
  return out;
}

TEST(RunnerRows, SeveralThreadsSayWhatOneSays) {
  const std::int32_t many = (1 << 18) / SimTokenizer().vocabulary() + 1;
  const std::vector<double> alone = said(1, many, false);
  EXPECT_GE(alone.size(), static_cast<std::size_t>(3 * many));
  EXPECT_EQ(said(3, many, true), alone);
}

TEST(RunnerRows, SmallStepsAreNotWorthWakingThreads) { said(3, 1, false); }

}  // namespace
}  // namespace chasqui
