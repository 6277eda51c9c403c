// Sessions for tests of their files: many different ones, and a folder to keep them in.
#pragma once

#include <algorithm>
#include <climits>
#include <csignal>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/fake_folder.h"
#include "engine/session_store.h"

namespace chasqui {

inline constexpr std::int64_t kNow = 1'700'000'000;
inline constexpr SessionFileLimits kFileLimits{.vocabulary = 1000};

inline VocabularyId weights(int model = 1) {
  VocabularyId id;
  id.fill(static_cast<std::byte>(model));
  return id;
}

inline ChatHistoryPtr chat(std::uint32_t state) {
  ChatMessage system;
  system.role = "system";
  system.content = "Be brief.";
  ChatMessage answer = system;
  answer.role = "assistant";
  answer.content = std::string(state % 300, 'a') + "ä\0b";
  answer.reasoning = "because";
  answer.tool_calls = {{"call_1", "runner", "{\"to\":" + std::to_string(state) + "}"}, {"call_2", "", ""}};
  ChatMessage tool = system;
  tool.role = "tool";
  tool.name = "runner";
  tool.tool_call_id = "call_1";
  ChatMessage look = system;
  look.role = "user";
  look.content = "[file] what is it?";
  const std::string bytes = std::string("\x89PNG\0", 5) + std::to_string(state);
  look.media = {std::make_shared<MediaFile>(MediaFile{MediaKind::picture, bytes}),
                std::make_shared<MediaFile>(MediaFile{MediaKind::sound, ""})};
  ChatHistory history = with_messages({}, {system, answer, tool, look});
  history.decoded_bytes = 1000 + state;
  history.tools = std::make_shared<const std::vector<Tool>>(std::vector<Tool>{{"runner", "runs", "{}"}});
  return std::make_shared<const ChatHistory>(with_answer(history, "done", "<|im_end|>"));
}

// The state-th state of a session; tokens and texts say which it is.
inline SessionImage image(std::uint32_t state = 7, const std::string& id = "sess_A1b2") {
  SessionImage out;
  out.id.text = id;
  out.owner = 0xfeed'0000'0000'0001;
  out.serial = 3;
  out.used = kNow;
  out.settings = {ServiceClass::interactive, seconds(600), kNow - 5};
  for (std::uint32_t i = 0; i < 10 + state % 500; ++i) out.tokens.push_back(static_cast<Token>((state + i) % 1000));
  if (state % 3 != 0) out.chat = chat(state);
  return out;
}

inline bool same_message(const ChatMessage& a, const ChatMessage& b) {
  const auto same_call = [](const ToolCall& x, const ToolCall& y) {
    return x.id == y.id && x.name == y.name && x.arguments == y.arguments;
  };
  const auto same_file = [](const MediaFilePtr& x, const MediaFilePtr& y) {
    return x->kind == y->kind && x->bytes == y->bytes;
  };
  if (!std::ranges::equal(a.media, b.media, same_file)) return false;
  return a.role == b.role && a.content == b.content && a.reasoning == b.reasoning && a.name == b.name &&
         a.tool_call_id == b.tool_call_id && std::ranges::equal(a.tool_calls, b.tool_calls, same_call);
}

inline bool same_chat(const ChatHistoryPtr& a, const ChatHistoryPtr& b) {
  if (!a || !b) return !a && !b;
  const auto same_tool = [](const Tool& x, const Tool& y) {
    return x.name == y.name && x.description == y.description && x.parameters == y.parameters;
  };
  if ((a->tools == nullptr) != (b->tools == nullptr)) return false;
  if (a->tools && !std::ranges::equal(*a->tools, *b->tools, same_tool)) return false;
  const auto same = [](const auto& x, const auto& y) { return same_message(*x, *y); };
  const bool same_files =
      a->files == b->files && a->file_bytes == b->file_bytes && a->decoded_bytes == b->decoded_bytes;
  return a->end == b->end && a->end_text == b->end_text && a->bytes == b->bytes && same_files &&
         std::ranges::equal(a->messages, b->messages, same);
}

inline bool same_image(const SessionImage& a, const SessionImage& b) {
  return a.id == b.id && a.owner == b.owner && a.serial == b.serial && a.used == b.used &&
         a.settings.service_class == b.settings.service_class && a.settings.ttl == b.settings.ttl &&
         a.settings.created == b.settings.created && a.tokens == b.tokens && same_chat(a.chat, b.chat);
}

class SessionStoreTest : public testing::Test {
 protected:
  std::unique_ptr<SessionStore> open(int model = 1) const {
    auto opened = SessionStore::open(folder_ / "sessions", weights(model));
    CHECK(opened.has_value(), opened.error().message);
    return std::move(*opened);
  }
  static void write(SessionStore& store, const SessionImage& image) {
    for (const auto& error : store.write({{image.id.text, image}})) EXPECT_FALSE(error) << error->message;
  }
  std::string path(const std::string& id) const { return std::string(folder_ / "sessions") + "/" + id + ".session"; }
  std::vector<std::string> names() const {
    std::vector<std::string> names = folder_.names("sessions");
    std::erase(names, "lock");
    std::ranges::sort(names);
    return names;
  }

  const FakeFolder folder_;
};

// What a process has said through a pipe that it has written, up to `most` of it.
inline std::uint32_t read_acknowledged(int pipe, std::uint32_t known, int most) {
  for (std::uint32_t state = 0; most > 0 && ::read(pipe, &state, sizeof state) == sizeof state; --most) known = state;
  return known;
}

// Kills a process that runs `write` for ever, which says through the pipe that it gets what it has written. Returns the
// last state that it has said, `known` where there is none.
template <class Write>
std::uint32_t kill_while_it_writes(std::mt19937_64& random, std::uint32_t known, Write&& write) {
  int pipe[2];
  CHECK(::pipe(pipe) == 0);
  const pid_t writer = ::fork();
  CHECK(writer >= 0);
  if (writer == 0) write(pipe[1]);
  ::close(pipe[1]);
  known = read_acknowledged(pipe[0], known, static_cast<int>(random() % 4));
  volatile std::uint64_t turns = random() % 2'000'000;
  while (turns > 0) turns = turns - 1;
  CHECK(::kill(writer, SIGKILL) == 0);
  int status = 0;
  CHECK(::waitpid(writer, &status, 0) == writer);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself";
  known = read_acknowledged(pipe[0], known, INT_MAX);
  ::close(pipe[0]);
  return known;
}

}  // namespace chasqui
