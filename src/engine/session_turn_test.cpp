// Files of sessions that grow by their turns: what comes back, what is cut, and what a kill leaves behind.
#include "engine/session_turn.h"

#include <filesystem>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cache/whole_file.h"
#include "engine/fake_sessions.h"

namespace chasqui {
namespace {

using SessionTurnTest = SessionStoreTest;

// The state-th state of a session that grows: what was said before stays, but for the answer that is not over.
SessionImage grown(std::uint32_t state) {
  SessionImage out = image(1);
  out.used = kNow + state;
  out.tokens.resize(5);
  ChatHistory history = *chat(1);
  for (std::uint32_t i = 0; i < state; ++i) {
    for (std::uint32_t t = 0; t < 3 + i % 40; ++t) out.tokens.push_back(static_cast<Token>((i + t) % 1000));
    if (i % 3 == 0) {
      ChatMessage asked;
      asked.role = "user";
      asked.content = "question " + std::to_string(i) + std::string(i % 70, 'q');
      history = with_messages(history, {asked});
    } else {
      history = with_answer(history, "answer " + std::to_string(i), i % 3 == 2 ? "<|im_end|>" : "");
    }
  }
  out.chat = std::make_shared<const ChatHistory>(std::move(history));
  return out;
}

SessionTurn turn_between(const SessionImage& before, const SessionImage& after) {
  SessionTurn turn{.used = after.used, .before = before.chat, .chat = after.chat};
  const auto [old_end, new_end] = std::ranges::mismatch(before.tokens, after.tokens);
  turn.kept = static_cast<std::size_t>(new_end - after.tokens.begin());
  turn.tokens.assign(new_end, after.tokens.end());
  return turn;
}

// As a table makes them: messages that stay are the same objects.
SessionImage next_of(const SessionImage& image, std::uint32_t state) {
  SessionImage after = grown(state);
  ChatHistory history = *after.chat;
  const auto& old = image.chat->messages;
  for (std::size_t i = 0; i < std::min(old.size(), history.messages.size()); ++i) {
    if (same_message(*old[i], *history.messages[i])) history.messages[i] = old[i];
  }
  history.tools = image.chat->tools;
  after.chat = std::make_shared<const ChatHistory>(std::move(history));
  return after;
}

void write_turn_to(SessionStore& store, SessionImage& now, std::uint32_t state) {
  SessionImage after = next_of(now, state);
  SessionChange change{.id = now.id.text};
  change.turn = turn_between(now, after);
  for (const auto& error : store.write({change})) CHECK(!error, error->message);
  now = std::move(after);
}

TEST_F(SessionTurnTest, AFileGrowsByItsTurnsAndComesBackAsItWas) {
  const std::string file = path("sess_A1b2");
  SessionImage now = grown(0);
  for (std::uint32_t state = 1; state < 90;) {
    const auto store = open();
    const auto found = store->load(kFileLimits, kNow);
    if (state == 1) write(*store, now);
    for (int i = 0; i < 7; ++i, ++state) {
      const auto before = std::filesystem::file_size(file);
      write_turn_to(*store, now, state);
      EXPECT_LT(std::filesystem::file_size(file) - before, 600u) << "a turn is written, not the history";
    }
    const auto loaded = store->load(kFileLimits, kNow);
    ASSERT_EQ(loaded.sessions.size(), 1u) << state;
    EXPECT_EQ(loaded.cut, 0u);
    EXPECT_TRUE(same_image(loaded.sessions[0], now)) << state;
    now = loaded.sessions[0];
  }
  EXPECT_GT(std::filesystem::file_size(file), 6000u);
}

TEST_F(SessionTurnTest, WhatIsTakenBackAndWhatFollowsOnATurnThatWasNotWrittenIsRight) {
  const auto store = open();
  SessionImage now = grown(10);
  write(*store, now);
  const SessionImage shorter = next_of(now, 8);
  SessionTurn turn = turn_between(now, shorter);
  const SessionImage longer = next_of(shorter, 9);
  add_turn(turn, turn_between(shorter, longer));
  SessionChange change{.id = now.id.text};
  change.turn = std::move(turn);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(store->write({change})[0]) << "twice is as good as once";
  EXPECT_TRUE(same_image(store->load(kFileLimits, kNow).sessions.at(0), grown(9)));
}

TEST_F(SessionTurnTest, AFileThatSaysTheSameAgainAndAgainIsWrittenAnew) {
  const auto store = open();
  SessionImage now = grown(0);
  write(*store, now);
  SessionImage longer = next_of(now, 1);
  ChatHistory said = with_answer(*longer.chat, std::string(3000, 'y'), "");
  longer.chat = std::make_shared<const ChatHistory>(std::move(said));
  std::uint64_t most = 0;
  for (int i = 0; i < 100; ++i) {
    SessionChange there{.id = now.id.text};
    there.turn = turn_between(now, longer);
    SessionChange back{.id = now.id.text};
    back.turn = turn_between(longer, now);
    EXPECT_FALSE(store->write({there})[0] || store->write({back})[0]);
    most = std::max<std::uint64_t>(most, std::filesystem::file_size(path("sess_A1b2")));
  }
  EXPECT_LT(most, 100'000u);
  EXPECT_TRUE(same_image(store->load(kFileLimits, kNow).sessions.at(0), now));
}

TEST_F(SessionTurnTest, ATurnThatWasNotWrittenToItsEndIsCutAndOneThatWasChangedIsNot) {
  const std::string file = path("sess_A1b2");
  std::vector<std::uint64_t> ends;
  {
    const auto store = open();
    SessionImage now = grown(0);
    write(*store, now);
    for (std::uint32_t state = 1; state <= 5; ++state) {
      ends.push_back(std::filesystem::file_size(file));
      write_turn_to(*store, now, state);
    }
  }
  const auto bytes =
      *read_whole(::open(std::string(folder_ / "sessions").c_str(), O_RDONLY), "sess_A1b2.session", 1 << 20);
  std::mt19937_64 random(43);
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::byte> changed = bytes;
    const std::size_t at = ends[0] + random() % (bytes.size() - ends[0]);
    const bool cut = random() % 2 == 0;
    if (cut) {
      changed.resize(at);
    } else {
      changed[at] ^= static_cast<std::byte>(1 + random() % 255);
    }
    const auto loaded = read_session(changed, weights(), kFileLimits);
    const auto turn = static_cast<std::uint32_t>(std::ranges::upper_bound(ends, at) - ends.begin());
    if (!cut && at < ends.back()) {
      EXPECT_FALSE(loaded) << "a turn before the last was changed at " << at;
      continue;
    }
    ASSERT_TRUE(loaded) << at;
    EXPECT_TRUE(same_image(loaded->image, grown(turn - 1))) << at;
  }
  // What is cut does not stay behind what comes.
  for (std::size_t size = ends.back(); size < bytes.size(); size += 7) {
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(size));
    const auto store = open();
    auto found = store->load(kFileLimits, kNow);
    EXPECT_EQ(found.cut, size == ends.back() ? 0u : 1u);
    SessionImage now = found.sessions.at(0);
    write_turn_to(*store, now, 5);
    found = store->load(kFileLimits, kNow);
    EXPECT_EQ(found.cut, 0u);
    EXPECT_TRUE(same_image(found.sessions.at(0), grown(5)));
  }
}

[[noreturn]] void grow_for_ever(const FakeFolder& folder, int acknowledge) {
  auto store = SessionStore::open(folder / "sessions", weights());
  CHECK(store.has_value());
  auto found = (*store)->load(kFileLimits, kNow);
  SessionImage now = found.sessions.empty() ? grown(0) : found.sessions[0];
  auto state = static_cast<std::uint32_t>(now.used - kNow);
  if (found.sessions.empty()) CHECK(!(*store)->write({{"sess_A1b2", now}})[0]);
  for (;;) {
    write_turn_to(**store, now, ++state);
    CHECK(::write(acknowledge, &state, sizeof state) == sizeof state);
  }
}

TEST_F(SessionTurnTest, AKillWhileAFileGrowsLeavesTheLastAcknowledgedStateOrTheOneAfterIt) {
  std::mt19937_64 random(20261124);
  std::uint32_t state = 0;
  for (int round = 0; round < 100; ++round) {
    const std::uint32_t acknowledged =
        kill_while_it_writes(random, state, [&](int pipe) { grow_for_ever(folder_, pipe); });

    const auto found = open()->load(kFileLimits, kNow);
    ASSERT_EQ(found.damaged, 0u) << round;
    ASSERT_TRUE(!found.sessions.empty() || acknowledged == 0) << "an acknowledged state is lost, round " << round;
    if (found.sessions.empty()) continue;
    const auto came_back = static_cast<std::uint32_t>(found.sessions[0].used - kNow);
    ASSERT_TRUE(came_back == acknowledged || came_back == acknowledged + 1) << "a third state, round " << round;
    ASSERT_TRUE(same_image(found.sessions[0], grown(came_back))) << round;
    state = came_back;
  }
  EXPECT_GT(state, 25u) << "they were killed before they wrote anything";
}

}  // namespace
}  // namespace chasqui
