// What came of a step, as the scheduler was told it: how long everything took, which tokens (as stand-ins) were
// sampled, which copies were made. Text is not in it, nor how likely tokens were, nor energy, which no plan depends on.
// A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "record/byte_stream.h"

namespace chasqui {

class RecordedResult {
 public:
  static constexpr std::size_t kSampleColumns = 3;
  static constexpr std::size_t kPromptColumns = 2;
  static constexpr std::size_t kSnapshotColumns = 3;
  static constexpr std::size_t kStatuses = 4;

  // In place of what it was; `stand_ins` are of the tokens of result.samples.
  void set(const BatchResult& result, std::span<const Token> stand_ins);
  // … and so many of the newest draft tokens of this sequence, which spoke in the step, agreed with what it said,
  // whether they were checked or not.
  void add_agreed(RequestId request, std::size_t agreed) {
    agreed_.insert(agreed_.end(), {static_cast<std::int64_t>(request.value), static_cast<std::int64_t>(agreed)});
  }
  // Nothing: it did not speak, or had no draft tokens.
  std::optional<std::int64_t> agreed(RequestId request) const;
  // Stand-ins of what this request said in the step, in place of what `out` held.
  void said(RequestId request, std::vector<Token>& out) const;

  // What does not go together with the batch, so that no scheduler could take it; nothing: all of it does.
  std::optional<std::string> misfit(const Batch& batch) const;
  // In place of what `result` was. Snapshots have sizes and no bytes. REQUIRES: !misfit()
  void give(BatchResult& result) const;

  template <class Io, class AnyResult>
  friend void pass_result(Io& io, AnyResult& result) {
    io.choice(result.status_, kStatuses);
    io(result.finished_, result.compute_, result.cpu_, result.saving_, result.restoring_, result.drafted_,
       result.drafting_, result.draft_reading_, result.learning_, result.constraining_, result.constrained_tokens_);
    io.table(result.samples_, kSampleColumns);
    io.table(result.put_off_, 1);
    io.table(result.prompts_, kPromptColumns);
    io.table(result.snapshots_, kSnapshotColumns);
    io.table(result.not_restored_, 1);
    io.table(result.agreed_, 2);
  }

 private:
  DecodeStatus status_ = DecodeStatus::ok;
  TimePoint finished_{};
  Duration compute_{};
  Duration cpu_{};
  Duration saving_{};
  Duration restoring_{};
  bool drafted_ = false;
  Duration drafting_{};
  Duration draft_reading_{};
  Duration learning_{};
  Duration constraining_{};
  std::int32_t constrained_tokens_ = 0;
  std::vector<std::int64_t> samples_;       // request, stand-in, flags
  std::vector<std::int64_t> put_off_;       // request
  std::vector<std::int64_t> prompts_;       // from, how many
  std::vector<std::int64_t> snapshots_;     // bytes (-1: none), tokens, tokens of a block
  std::vector<std::int64_t> not_restored_;  // place in Batch::restores
  std::vector<std::int64_t> agreed_;        // request, how many
};

}  // namespace chasqui
