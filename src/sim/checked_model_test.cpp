// Each rule of a batch is broken once: a checker that never complains checks nothing.
#include "sim/checked_model.h"

#include "sim/fake_batches.h"

namespace chasqui {
namespace {

TEST_F(CheckedModelTest, AnAnswerIsTheSameWhereverItIsComputed) {
  SimRequest& life = add(6, 4);
  SimRequest& other = add(3, 4);
  part(life, 0, 0, 4);
  part(other, 1, 0, 3);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(model_.held(), 7);
  part(life, 0, 4, 2);
  EXPECT_EQ(run(), "");
  ASSERT_EQ(result_.samples.size(), 1u);
  EXPECT_EQ(result_.samples[0].token, generated_[life.place][0]);
  part(life, 0, 6, 1);
  part(other, 1, 3, 1);
  EXPECT_EQ(run(Batch::Kind::decode), "");
  EXPECT_EQ(life.generated, 2);

  // Preempted, computed again in another slot, moved, and on it goes.
  batch_.trims = {SlotId{0}};
  part(life, 2, 0, 8);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(life.preempted, 1);
  EXPECT_EQ(life.generated, 3);
  batch_.moves = {{SlotId{2}, SlotId{0}}};
  part(life, 0, 8, 1);
  EXPECT_EQ(run(Batch::Kind::decode), "");
  EXPECT_EQ(life.generated, 4);
  EXPECT_EQ(model_.moves(), 1u);
  EXPECT_EQ(model_.recomputed_rows(), 8u);
  EXPECT_EQ(model_.held_by_living(), 9 + 4);
  end(life);
  EXPECT_EQ(model_.held_by_living(), 4);
}

TEST_F(CheckedModelTest, FindsAWrongPosition) {
  SimRequest& life = add(6, 4);
  part(life, 0, 0, 6);
  batch_.rows[3].position = 4;
  EXPECT_EQ(run(), "us: batch: a position that does not continue its slot (request 1)");
}

TEST_F(CheckedModelTest, FindsASkippedPosition) {
  SimRequest& life = add(6, 4);
  part(life, 0, 1, 2);
  EXPECT_EQ(run(), "us: batch: a position that does not continue its slot (request 1)");
}

TEST_F(CheckedModelTest, FindsAMissingTrim) {
  SimRequest& life = add(3, 4);
  part(life, 0, 0, 3);
  EXPECT_EQ(run(), "");
  end(life);
  SimRequest& next = add(3, 4);
  part(next, 0, 0, 3);
  EXPECT_NE(run().find("a slot was used again without a trim"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsAWrongToken) {
  SimRequest& life = add(3, 4);
  part(life, 0, 0, 3);
  batch_.rows[1].token ^= 1;
  EXPECT_NE(run().find("tokens: not the prompt's token"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsAWrongGeneratedTokenAtTheNextSample) {
  SimRequest& life = add(3, 4);
  part(life, 0, 0, 3);
  EXPECT_EQ(run(), "");
  part(life, 0, 3, 1);
  batch_.rows[0].token ^= 1;
  EXPECT_NE(run(Batch::Kind::decode).find("does not hold this request's history"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsTwoSequencesThatSwappedTheirSlots) {
  SimRequest& life = add(3, 4);
  SimRequest& other = add(3, 4);
  part(life, 0, 0, 3);
  part(other, 1, 0, 3);
  EXPECT_EQ(run(), "");
  part(other, 0, 3, 1);
  part(life, 1, 3, 1);
  EXPECT_NE(run(Batch::Kind::decode).find("without a trim"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsAForgottenMove) {
  SimRequest& life = add(3, 4);
  SimRequest& other = add(3, 4);
  part(life, 0, 0, 3);
  part(other, 1, 0, 3);
  EXPECT_EQ(run(), "");
  part(other, 2, 3, 1);  // never moved there
  EXPECT_NE(run(Batch::Kind::decode).find("rows in another slot than before"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsAMoveOntoSomething) {
  SimRequest& life = add(3, 4);
  SimRequest& other = add(3, 4);
  part(life, 0, 0, 3);
  part(other, 1, 0, 3);
  EXPECT_EQ(run(), "");
  batch_.moves = {{SlotId{1}, SlotId{0}}};
  part(other, 0, 3, 1);
  EXPECT_NE(run(Batch::Kind::decode).find("move into a slot that holds something"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsSlotsThatDoNotAscend) {
  SimRequest& life = add(3, 4);
  SimRequest& other = add(3, 4);
  part(life, 1, 0, 3);
  part(other, 0, 0, 3);
  EXPECT_EQ(run(), "us: batch: slots do not ascend");
}

TEST_F(CheckedModelTest, FindsRowsOfTheEnded) {
  SimRequest& life = add(3, 4);
  const RequestPtr request = life.request;
  part(life, 0, 0, 3);
  end(life);
  EXPECT_EQ(run(), "us: one-terminal: rows of a request that has ended");
}

TEST_F(CheckedModelTest, FindsAForgottenSample) {
  SimRequest& life = add(3, 4);
  part(life, 0, 0, 3);
  batch_.parts[0].samples = false;
  batch_.rows[2].output = false;
  EXPECT_NE(run().find("the last known token samples and no other"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsTooManyRows) {
  SimRequest& life = add(65, 4);
  part(life, 0, 0, 65);
  EXPECT_EQ(run(), "us: bounded: more rows than rows_max");
}

TEST_F(CheckedModelTest, FindsADecodingSequenceInAPrefillBatch) {
  SimRequest& life = add(3, 4);
  part(life, 0, 0, 3);
  EXPECT_EQ(run(), "");
  part(life, 0, 3, 1);
  EXPECT_NE(run(Batch::Kind::prefill).find("a decoding sequence in a prefill batch"), std::string::npos);
}

TEST_F(CheckedModelTest, ASnapshotGoesOnInAnyEmptySlotAsFarAsItIsWanted) {
  SimRequest& life = add(6, 4);
  part(life, 0, 0, 6);
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr snapshot = save(0, 6);
  EXPECT_EQ(snapshot->size(), 6 * kTokenBytes);
  end(life);

  SimRequest& next = add(6, 4);
  RequestDraft draft;
  draft.prompt = test_prompt(6, 1);  // as the first one's
  draft.max_tokens = 4;
  draft.sampling.seed = 1;
  next.request = test_request(lives_.new_id(next).value, std::move(draft));
  next.history = 0;
  for (const Token token : next.request->prompt) next.history = extend_history(next.history, token);
  restore(next, 2, snapshot, 4);
  part(next, 2, 4, 2);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(result_.samples.size(), 1u);
  EXPECT_EQ(model_.held_by_living(), 6);
  EXPECT_EQ(model_.restored_tokens(), 4u);
  EXPECT_EQ(model_.prompt_rows(), 6u + 2);
}

TEST_F(CheckedModelTest, FindsASaveOfWhatTheSlotDoesNotHold) {
  SimRequest& life = add(6, 4);
  part(life, 0, 0, 4);
  EXPECT_EQ(run(), "");
  batch_.saves = {{SlotId{0}, 5}};
  EXPECT_EQ(run(), "us: batch: save of what the slot does not hold");
}

TEST_F(CheckedModelTest, FindsARestoreOfAnothersTokens) {
  SimRequest& life = add(6, 4);
  SimRequest& other = add(6, 4);
  part(life, 0, 0, 6);
  EXPECT_EQ(run(), "");
  restore(other, 1, save(0, 6), 5);
  part(other, 1, 5, 1);
  EXPECT_NE(run().find("tokens: restored other tokens than the prompt's"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsARestoreOfAllThatIsKnown) {
  SimRequest& life = add(6, 4);
  part(life, 0, 0, 4);
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr snapshot = save(0, 4);
  batch_.trims = {SlotId{0}};
  restore(life, 0, snapshot, 5);
  part(life, 0, 5, 1);
  EXPECT_NE(run().find("batch: restore of more than there is, or of all that is known"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsARestoreOntoSomething) {
  SimRequest& life = add(6, 4);
  SimRequest& other = add(6, 4);
  part(life, 0, 0, 6);
  part(other, 1, 0, 6);
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr snapshot = save(0, 6);
  SimRequest& next = add(6, 4);
  restore(next, 1, snapshot, 5);
  EXPECT_NE(run().find("batch: restore into a slot that holds something"), std::string::npos);
}

TEST_F(CheckedModelTest, ARestoreThatFailsLeavesTheSlotEmptyAndComputesNothing) {
  SimRequest& life = add(6, 4);
  part(life, 0, 0, 4);
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr snapshot = save(0, 4);
  model_.fail_next_restore();
  batch_.trims = {SlotId{0}};
  restore(life, 1, snapshot, 4);
  part(life, 1, 4, 2);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(result_.not_restored, (std::vector<std::size_t>{0}));
  EXPECT_EQ(result_.status, DecodeStatus::aborted);
  EXPECT_EQ(model_.held(), 0);
  part(life, 1, 0, 6);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(result_.samples.size(), 1u);
}

TEST_F(CheckedModelTest, AFailedBatchChangesNothingButTrims) {
  SimRequest& life = add(3, 4);
  part(life, 0, 0, 3);
  batch_.kind = Batch::Kind::prefill;
  model_.run(batch_, DecodeStatus::failed, 1, result_);
  EXPECT_FALSE(faults_.any());
  EXPECT_EQ(model_.held(), 0);
  EXPECT_TRUE(result_.samples.empty());
  EXPECT_FALSE(life.started);
}

}  // namespace
}  // namespace chasqui
