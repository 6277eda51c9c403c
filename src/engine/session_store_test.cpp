// Sessions in files: what comes back, what does not, and what a kill leaves behind.
#include "engine/session_store.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "engine/fake_sessions.h"

namespace chasqui {
namespace {

TEST(SessionFile, ComesBackAsItWas) {
  for (std::uint32_t state = 0; state < 60; ++state) {
    const auto loaded = read_session(write_session(image(state), weights()), weights(), kFileLimits);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE(same_image(loaded->image, image(state))) << state;
    EXPECT_FALSE(loaded->foreign);
  }
}

TEST(SessionFile, AnotherModelsSessionIsForeign) {
  const auto loaded = read_session(write_session(image(), weights(1)), weights(2), kFileLimits);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->foreign);
}

// As an attacker would, who can compute a checksum as well.
void sign(std::vector<std::byte>& bytes) {
  Checksummer sum;
  sum.add(std::span(bytes).first(28));
  sum.add(std::span(bytes).subspan(44));
  std::ranges::copy(sum.result(), bytes.begin() + 28);
}

TEST(SessionFile, TenThousandMutationsAreRefused) {
  std::mt19937_64 random(41);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 10'000; ++i) {
    const SessionImage original = image(static_cast<std::uint32_t>(below(50)));
    const std::vector<std::byte> good = write_session(original, weights());
    std::vector<std::byte> bytes = good;
    switch (below(4)) {
      case 0: bytes.resize(below(bytes.size())); break;
      case 1: bytes[below(bytes.size())] ^= static_cast<std::byte>(1 + below(255)); break;
      case 2: bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), std::byte{0}); break;
      default: {
        const std::size_t at = below(bytes.size());
        for (std::size_t j = at; j < std::min(bytes.size(), at + 64); ++j) bytes[j] = static_cast<std::byte>(random());
      }
    }
    if (bytes == good) continue;
    const auto loaded = read_session(bytes, weights(), kFileLimits);
    if (!loaded) continue;
    // A byte behind the end is what is left of a turn.
    EXPECT_TRUE(bytes.size() > good.size() && loaded->place.end == good.size()) << i;
    EXPECT_TRUE(same_image(loaded->image, original)) << i;
  }
}

TEST(SessionFile, AForgedChecksumDoesNotCrash) {
  std::mt19937_64 random(42);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::byte> bytes = write_session(image(static_cast<std::uint32_t>(below(50))), weights());
    const std::size_t changes = 1 + below(4);
    for (std::size_t j = 0; j < changes; ++j) {
      bytes[44 + below(std::min<std::size_t>(bytes.size() - 44, 400))] = static_cast<std::byte>(random());
    }
    if (below(4) == 0) bytes.resize(44 + below(bytes.size() - 44));
    sign(bytes);
    const auto loaded = read_session(bytes, weights(), kFileLimits);
    refused += loaded ? 0 : 1;
    if (!loaded) continue;
    for (const Token token : loaded->image.tokens) ASSERT_TRUE(token != kNoToken && token < kFileLimits.vocabulary);
  }
  EXPECT_GT(refused, 5000);
}

TEST_F(SessionStoreTest, KeepsTheNewestStateOfEachInTheOrderInWhichTheyWereMade) {
  SessionImage first = image(1, "sess_z");
  SessionImage second = image(2, "sess_a");
  first.serial = 1;
  second.serial = 2;
  {
    const auto store = open();
    write(*store, image(5, "sess_z"));
    write(*store, second);
    write(*store, first);
    write(*store, image(6, "sess_gone"));
    const auto errors = store->write({{"sess_gone", std::nullopt}, {"sess_never", std::nullopt}});
    EXPECT_FALSE(errors[0] || errors[1]);
  }
  const auto found = open()->load(kFileLimits, kNow);
  ASSERT_EQ(found.sessions.size(), 2u);
  EXPECT_TRUE(same_image(found.sessions[0], first));
  EXPECT_TRUE(same_image(found.sessions[1], second));
}

TEST_F(SessionStoreTest, WhatIsDamagedIsSetAside) {
  write(*open(), image(1, "sess_good"));
  write(*open(), image(2, "sess_bad"));
  std::filesystem::resize_file(path("sess_bad"), std::filesystem::file_size(path("sess_bad")) - 1);
  std::ofstream(path("sess_empty"));
  std::ofstream(path("sess_half") + ".part") << "half";
  std::ofstream(std::string(folder_ / "sessions") + "/notes.txt") << "not ours";
  const auto found = open()->load(kFileLimits, kNow);
  EXPECT_EQ(found.sessions.size(), 1u);
  EXPECT_EQ(found.damaged, 2u);
  EXPECT_EQ(names(), (std::vector<std::string>{"notes.txt", "sess_bad.session.damaged", "sess_empty.session.damaged",
                                               "sess_good.session"}));
  EXPECT_EQ(open()->load(kFileLimits, kNow).damaged, 0u) << "once is enough";
}

TEST_F(SessionStoreTest, AFileUnderAnothersNameIsDamaged) {
  write(*open(), image(1, "sess_mine"));
  ASSERT_EQ(std::rename(path("sess_mine").c_str(), path("sess_yours").c_str()), 0);
  const auto found = open()->load(kFileLimits, kNow);
  EXPECT_TRUE(found.sessions.empty());
  EXPECT_EQ(found.damaged, 1u);
}

TEST_F(SessionStoreTest, WhatHasExpiredIsRemovedWhosesoeverItIs) {
  write(*open(1), image(1, "sess_old"));
  write(*open(2), image(1, "sess_foreign"));
  auto found = open()->load(kFileLimits, kNow + 599);
  EXPECT_EQ(found.sessions.size(), 1u);
  EXPECT_EQ(found.foreign, 1u);
  found = open()->load(kFileLimits, kNow + 600);
  EXPECT_TRUE(found.sessions.empty());
  EXPECT_EQ(found.expired, 2u);
  EXPECT_TRUE(names().empty());
}

TEST_F(SessionStoreTest, SaysWhatCouldNotBeWritten) {
  const auto store = open();
  ASSERT_EQ(::mkdir((path("sess_no") + "").c_str(), 0700), 0);
  const auto errors = store->write({{"sess_no", image(1, "sess_no")}, {"sess_yes", image(1, "sess_yes")}});
  EXPECT_TRUE(errors[0].has_value());
  EXPECT_FALSE(errors[1].has_value());
}

TEST_F(SessionStoreTest, OneProcessAtATime) {
  const auto store = open();
  const auto second = SessionStore::open(folder_ / "sessions", weights());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

[[noreturn]] void write_for_ever(const FakeFolder& folder, std::uint32_t first, int acknowledge) {
  auto store = SessionStore::open(folder / "sessions", weights());
  CHECK(store.has_value());
  for (std::uint32_t state = first;; ++state) {
    CHECK(!(*store)->write({{"sess_A1b2", image(state)}})[0]);
    CHECK(::write(acknowledge, &state, sizeof state) == sizeof state);
  }
}

// A process that writes one session again and again is killed two hundred times.
TEST_F(SessionStoreTest, AKillLeavesTheLastAcknowledgedStateOrTheOneAfterIt) {
  std::mt19937_64 random(20261121);
  std::uint32_t state = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t acknowledged =
        kill_while_it_writes(random, state, [&](int pipe) { write_for_ever(folder_, state + 1, pipe); });

    const auto found = open()->load(kFileLimits, kNow);
    ASSERT_EQ(found.damaged, 0u) << round;
    if (found.sessions.empty()) {
      ASSERT_EQ(acknowledged, 0u) << "an acknowledged state is lost, round " << round;
      continue;
    }
    const bool before = acknowledged > 0 && same_image(found.sessions[0], image(acknowledged));
    const bool after = same_image(found.sessions[0], image(acknowledged + 1));
    ASSERT_TRUE(before || after) << "a third state, round " << round;
    state = after ? acknowledged + 1 : acknowledged;
    EXPECT_EQ(names(), std::vector<std::string>{"sess_A1b2.session"});
  }
  EXPECT_GT(state, 50u) << "they were killed before they wrote anything";
}

// As version 2 wrote it: a session of three tokens and a message, and the turn of an answer.
constexpr std::string_view kVersion2 =
    "Q2hhc3F1aVMCAAAAAQEBAQEBAQEBAQEBAQEBASZkC/+2YzzoVwdUMiPXzUPTAAAAAAAAAAkAAAAAAAAAc2Vzc19BMWIyBQAAAAAAAAADAAAA"
    "AAAAAADxU2UAAAAAAFgCAAAAAAAA+/BTZQAAAAADAAAAAAAAAAEAAAACAAAAAwAAAAEBAAAAAAAAAAQAAAAAAAAAdXNlcgIAAAAAAAAASGkA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADuAAAAAAAAAFR1cm6PAAAAMqp8goYhH3/Q+F8F/uUrLQHxU2UAAAAA"
    "AwAAAAAAAAABAAAAAAAAAAQAAAABAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAACQAAAAAAAABhc3Npc3RhbnQFAAAAAAAAAEhlbGxvAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgoAAAAAAAAAPHxpbV9lbmR8PuQBAAAAAAAA";

TEST_F(SessionStoreTest, AFileWithoutPicturesAndSoundsIsReadAndGoesOn) {
  open();
  std::ofstream(path("sess_A1b2"), std::ios::binary) << *decode_base64(kVersion2);
  SessionImage before;
  {
    const auto store = open();
    const auto found = store->load(kFileLimits, kNow);
    ASSERT_EQ(found.sessions.size(), 1u);
    before = found.sessions.front();
    EXPECT_EQ(before.tokens, (std::vector<Token>{1, 2, 3, 4}));
    ASSERT_EQ(before.chat->messages.size(), 2u);
    EXPECT_EQ(before.chat->messages[1]->content, "Hello");
    EXPECT_EQ(before.chat->end_text, "<|im_end|>");
    SessionTurn turn{.used = kNow + 1, .kept = 4, .tokens = {-7}, .before = before.chat};
    ChatMessage look;
    look.role = "user";
    look.media = {std::make_shared<MediaFile>(MediaFile{MediaKind::picture, "png"})};
    turn.chat = std::make_shared<const ChatHistory>(with_messages(*before.chat, {look}));
    SessionChange change{.id = before.id.text};
    change.turn = turn;
    for (const auto& error : store->write({change})) EXPECT_FALSE(error) << error->message;
    add_turn(before, std::move(turn));
  }
  const auto after = open()->load(kFileLimits, kNow);
  ASSERT_EQ(after.sessions.size(), 1u);
  EXPECT_TRUE(same_image(after.sessions.front(), before));
}

}  // namespace
}  // namespace chasqui
