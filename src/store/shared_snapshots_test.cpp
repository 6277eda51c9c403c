#include "store/shared_snapshots.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "core/fake_requests.h"
#include "store/fake_shared_store.h"

namespace chasqui::store {
namespace {

using Tokens = std::vector<Token>;

constexpr LastingKey kMine{7, 3};

KvSnapshotPtr kv_of(const Tokens& tokens) {
  const auto kv = std::make_shared<KvSnapshot>(tokens.size() * 10, static_cast<TokenCount>(tokens.size()));
  for (std::size_t i = 0; i < kv->bytes().size(); ++i) kv->bytes()[i] = static_cast<std::byte>(tokens[i / 10] + i);
  return kv;
}

class SharedSnapshotsTest : public testing::Test {
 protected:
  std::unique_ptr<SharedSnapshots> node(int model = 1) {
    return std::make_unique<SharedSnapshots>(std::make_unique<FakeObjectStore>(shared_), fake_identity(model), "fake");
  }
  SharedSnapshot write(SharedSnapshots& at, const Tokens& tokens, LastingKey key = kMine, std::int64_t now = 100) {
    auto written = at.write(key, tokens, kv_of(tokens), now);
    EXPECT_TRUE(written);
    return std::move(*written);
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : shared_.objects) out.push_back(name);
    return out;
  }

  FakeShared shared_;
  const Tokens first_ = test_prompt(100, 1);
  const Tokens second_ = test_prompt(50, 2);
};

TEST_F(SharedSnapshotsTest, AnotherNodeFindsAndReadsWhatOneHasWritten) {
  const auto one = node();
  const auto other = node();
  write(*one, second_, kMine, 200);
  write(*one, first_, kMine, 100);
  const auto listed = other->list();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_TRUE(listed->front().is_of_model);
  EXPECT_EQ(listed->front().tenant, kMine.tenant);
  EXPECT_EQ(listed->front().bytes, snapshot_file_bytes(100, 1000)) << "the older one is first";
  EXPECT_EQ(listed->front().content, other->content_of(kMine, first_));
  const auto heads = other->heads(*listed, {});
  ASSERT_TRUE(heads[0] && heads[1]);
  EXPECT_EQ(heads[0]->tokens, first_);
  EXPECT_EQ(heads[0]->key, kMine);
  EXPECT_EQ(heads[1]->tokens, second_);
  const auto loaded = other->read(listed->front(), {});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->head.tokens, first_);
  EXPECT_TRUE(std::ranges::equal(loaded->kv->bytes(), kv_of(first_)->bytes()));
}

TEST_F(SharedSnapshotsTest, AnotherModelsTakesRoomAndIsNotRead) {
  write(*node(2), first_);
  const auto one = node(1);
  const auto listed = one->list();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_FALSE(listed->front().is_of_model);
  EXPECT_EQ(one->heads(*listed, {}).front().error().code, ErrorCode::conflict);
  EXPECT_EQ(one->read(listed->front(), {}).error().code, ErrorCode::conflict);
}

TEST_F(SharedSnapshotsTest, ContentIsOfTheModelTheKeyAndTheTokens) {
  const auto one = node();
  const Checksum content = one->content_of(kMine, first_);
  EXPECT_EQ(node()->content_of(kMine, first_), content);
  EXPECT_NE(node(2)->content_of(kMine, first_), content);
  EXPECT_NE(one->content_of({7, 0}, first_), content);
  EXPECT_NE(one->content_of({8, 3}, first_), content);
  EXPECT_NE(one->content_of(kMine, second_), content);
}

TEST_F(SharedSnapshotsTest, NoChangedByteIsBelieved) {
  const auto one = node();
  const SharedSnapshot snapshot = write(*one, second_);
  for (auto& [name, bytes] : shared_.objects) {
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
      bytes[at] ^= std::byte{1};
      const bool head = name.starts_with("snapshot_heads/");
      EXPECT_FALSE(head ? one->heads({&snapshot, 1}, {}).front().has_value() : one->read(snapshot, {}).has_value())
          << name << " " << at;
      bytes[at] ^= std::byte{1};
    }
    const auto whole = bytes;
    bytes.pop_back();
    EXPECT_FALSE(one->heads({&snapshot, 1}, {}).front() && one->read(snapshot, {})) << name;
    bytes = whole;
  }
  EXPECT_TRUE(one->heads({&snapshot, 1}, {}).front() && one->read(snapshot, {}));
}

TEST_F(SharedSnapshotsTest, AnObjectUnderAnothersNameIsRefused) {
  const auto one = node();
  const SharedSnapshot mine = write(*one, first_);
  const SharedSnapshot theirs = write(*one, test_prompt(100, 3), {8, 0});
  for (const std::string folder : {"snapshots/", "snapshot_heads/"}) {
    shared_.objects.at(folder + mine.name) = shared_.objects.at(folder + theirs.name);
  }
  EXPECT_EQ(one->heads({&mine, 1}, {}).front().error().code, ErrorCode::invalid_request);
  EXPECT_EQ(one->read(mine, {}).error().code, ErrorCode::invalid_request);
}

TEST_F(SharedSnapshotsTest, OtherNamesAreNotItsOwn) {
  const auto one = node();
  const SharedSnapshot snapshot = write(*one, first_);
  for (const std::string& name :
       {std::string("note"), snapshot.name + "0", snapshot.name.substr(1), "-" + snapshot.name}) {
    shared_.objects["snapshot_heads/" + name] = {};
    shared_.objects["snapshots/" + name] = {};
  }
  EXPECT_EQ(one->list()->size(), 1u);
  EXPECT_EQ(one->erase(kMine.tenant).value(), 1u);
  EXPECT_EQ(shared_.objects.size(), 8u) << "nothing of it was removed";
}

TEST_F(SharedSnapshotsTest, WhatIsRemovedIsGone) {
  const auto one = node();
  const SharedSnapshot snapshot = write(*one, first_);
  write(*one, second_);
  EXPECT_TRUE(one->remove({&snapshot, 1}));
  EXPECT_EQ(one->list()->size(), 1u);
  EXPECT_EQ(shared_.objects.size(), 2u);
  EXPECT_EQ(one->read(snapshot, {}).error().code, ErrorCode::not_found);
  EXPECT_TRUE(one->remove({&snapshot, 1})) << "again";
}

TEST_F(SharedSnapshotsTest, WhatANodeLeftHalfIsRemovedLater) {
  const auto one = node();
  write(*one, first_, kMine, 100);
  const SharedSnapshot half = write(*one, second_, kMine, 100);
  shared_.objects.erase("snapshot_heads/" + half.name);
  EXPECT_EQ(one->list()->size(), 1u);
  EXPECT_EQ(one->remove_strays(100).value(), 0u) << "it may still be written";
  EXPECT_EQ(one->remove_strays(101).value(), 1u);
  EXPECT_EQ(shared_.objects.size(), 2u);
}

TEST_F(SharedSnapshotsTest, AnErasedTenantLeavesNothingOfAnyModel) {
  const auto one = node();
  write(*one, first_);
  write(*node(2), second_, {kMine.tenant, 0});
  const SharedSnapshot half = write(*one, test_prompt(30, 5));
  shared_.objects.erase("snapshot_heads/" + half.name);
  write(*one, second_, {8, 0});
  EXPECT_EQ(one->erase(kMine.tenant).value(), 3u);
  EXPECT_EQ(one->list()->size(), 1u);
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(SharedSnapshotsTest, WhatTheStoreDoesNotAnswerIsAnError) {
  const auto one = node();
  const SharedSnapshot snapshot = write(*one, first_);
  shared_.store_faults = 100;
  EXPECT_FALSE(one->list());
  EXPECT_FALSE(one->heads({&snapshot, 1}, {}).front());
  EXPECT_EQ(one->read(snapshot, {}).error().code, ErrorCode::unavailable);
  EXPECT_FALSE(one->write(kMine, second_, kv_of(second_), 1));
  EXPECT_FALSE(one->remove({&snapshot, 1}));
  EXPECT_FALSE(one->erase(kMine.tenant)) << "nothing says that it is gone";
  EXPECT_FALSE(one->remove_strays(1000));
}

TEST_F(SharedSnapshotsTest, WhatIsTooLargeIsNotRead) {
  const auto one = node();
  const SharedSnapshot snapshot = write(*one, first_);
  EXPECT_EQ(one->heads({&snapshot, 1}, {.kv_bytes = 999}).front().error().code, ErrorCode::too_large);
  EXPECT_FALSE(one->heads({&snapshot, 1}, {.tokens = 99}).front());
  EXPECT_FALSE(one->read(snapshot, {.kv_bytes = 999}));
}

}  // namespace
}  // namespace chasqui::store
