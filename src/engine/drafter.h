// A second, smaller model of the same vocabulary that drafts the next tokens of sequences: before the rows of a step
// are computed it reads what it has not seen, and writes its draft tokens into the rows that check them. Its slots are
// those of the large model, emptied and moved with them; which tokens it has is the Scheduler's business, which plans
// all of it. Owned by the Runner; worker thread only.
#pragma once

#include <memory>
#include <vector>

#include "core/batch.h"
#include "model/model.h"

namespace chasqui {

class Drafter {
 public:
  // REQUIRES: as many slots and cells as the large model has, memory that can be trimmed anywhere
  // `vocabulary` is that of the large model, which may have some tokens more or fewer at the end.
  Drafter(std::unique_ptr<Model> model, TokenCount vocabulary);

  // What leaves its slot or goes to another, which also counts for a step that is not computed after all.
  void follow(const Batch& batch);
  // Does what batch.drafting says. The times go to `result`. Where it fails the draft tokens have no meaning and are
  // rejected.
  void draft(Batch& batch, BatchResult& result, const Clock& clock);

  // See Model.
  void fall_asleep();
  Result<void> wake() { return model_->wake(); }

 private:
  bool compute(const std::vector<Row>& rows, Batch::Kind kind);
  Token best(std::int32_t row);
  bool write_draft_tokens(Batch& batch);

  const std::unique_ptr<Model> model_;
  const TokenCount vocabulary_;
  std::vector<TokenCount> held_;  // positions of each slot
  Batch own_;
};

}  // namespace chasqui
