// What the checked model knows of pieces, draft tokens, exchanges and adapters.
#include <memory>

#include "sim/fake_batches.h"

namespace chasqui {
namespace {

// In blocks, of any range.
class CheckedBlocksTest : public CheckedModelTest {
 protected:
  CheckedBlocksTest() : CheckedModelTest(4) {}
};

TEST_F(CheckedBlocksTest, ASlotIsCopiedOutInPieces) {
  SimRequest& life = add(10, 4);
  part(life, 0, 0, 10);
  EXPECT_EQ(run(), "");
  batch_.saves = {{SlotId{0}, 8, 0}};
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr begin = result_.snapshots.at(0);
  batch_.saves = {{SlotId{0}, 10, 8}};
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr whole = KvSnapshot::joined(*begin, 8, *result_.snapshots.at(0));
  batch_.trims = {SlotId{0}};
  restore(life, 1, whole, 10);
  part(life, 1, 10, 1);
  EXPECT_EQ(run(Batch::Kind::decode), "");
  batch_.saves = {{SlotId{1}, 10, 2}};
  EXPECT_EQ(run(), "us: batch: save of what the slot does not hold");
}

TEST_F(CheckedModelTest, DraftTokensAreAcceptedAsFarAsTheyAreWhatIsSaid) {
  SimRequest& life = add(6, 9);
  part(life, 0, 0, 6);
  EXPECT_EQ(run(), "");
  for (const double acceptance : {1.0, 0.0}) {
    part(life, 0, life.known - 1, 1);
    batch_.parts[0].draft_tokens = 3;
    for (TokenCount i = 0; i < 3; ++i) batch_.rows.push_back({0, life.known + i, SlotId{0}, true});
    Random dice(1);
    batch_.kind = Batch::Kind::decode;
    model_.draft(batch_, acceptance, dice);
    EXPECT_EQ(run(Batch::Kind::decode), "");
    EXPECT_EQ(result_.samples.size(), acceptance > 0 ? 4u : 1u);
    EXPECT_EQ(model_.held(), life.known - 1);
  }
  EXPECT_EQ(life.generated, 1 + 4 + 1);
  part(life, 0, life.known - 1, 1);
  batch_.parts[0].draft_tokens = 3;
  for (TokenCount i = 0; i < 3; ++i) batch_.rows.push_back({0, life.known + i, SlotId{0}, true});
  EXPECT_NE(run(Batch::Kind::decode).find("draft tokens beyond the answer"), std::string::npos);
}

TEST_F(CheckedModelTest, TwoSequencesChangePlaces) {
  SimRequest& life = add(3, 4);
  SimRequest& other = add(3, 4);
  part(life, 0, 0, 3);
  part(other, 1, 0, 3);
  EXPECT_EQ(run(), "");
  batch_.moves = {{SlotId{0}, SlotId{1}, true}};
  part(other, 0, 3, 1);
  part(life, 1, 3, 1);
  EXPECT_EQ(run(Batch::Kind::decode), "");
}

TEST_F(CheckedModelTest, FindsRowsWithOtherAdaptersThanTheirRequestWants) {
  SimRequest& life = add(3, 4);
  const AdapterSet adapters{5, {{0, 1}}};
  part(life, 0, 0, 3);
  batch_.adapters = &adapters;
  EXPECT_NE(run().find("rows with other adapters than the request wants"), std::string::npos);
}

TEST_F(CheckedModelTest, FindsARestoreOfWhatOtherAdaptersHaveComputed) {
  SimRequest& life = add(6, 4);
  part(life, 0, 0, 6);
  EXPECT_EQ(run(), "");
  const KvSnapshotPtr snapshot = save(0, 6);
  SimRequest& next = add(6, 4);
  RequestDraft draft;
  draft.prompt = life.request->prompt;
  draft.max_tokens = 4;
  draft.sampling.seed = 1;
  draft.adapters = std::make_shared<AdapterSet>(AdapterSet{5, {{0, 1}}});
  next.request = test_request(lives_.new_id(next).value, std::move(draft));
  restore(next, 2, snapshot, 4);
  part(next, 2, 4, 2);
  EXPECT_NE(run().find("tokens: restored other tokens than the prompt's"), std::string::npos);
}

}  // namespace
}  // namespace chasqui
