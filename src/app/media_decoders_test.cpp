#include "app/media_decoders.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/decoder_child.h"
#include "model/sound_file.h"
#include "model/test_files.h"

namespace chasqui {
namespace {

constexpr Duration kLong = seconds(60);  // no test waits for it

// A decoder without a program of its own: what it does with its socket.
SpawnDecoder forked(std::function<void(int socket)> does) {
  return [does = std::move(does)](int socket) {
    const pid_t id = ::fork();
    if (id != 0) return id;
    does(socket);
    ::_exit(7);
  };
}

void say(int socket, const void* what, std::size_t bytes) {
  if (::write(socket, what, bytes) != static_cast<ssize_t>(bytes)) ::_exit(8);
}

void greet(int socket) {
  const DecodeAnswer greeting;
  say(socket, &greeting, sizeof greeting);
}

DecodeOrder hear(int socket) {
  DecodeOrder order;
  if (::read(socket, &order, sizeof order) != sizeof order) ::_exit(9);
  std::string file(order.bytes, '\0');
  for (std::size_t at = 0; at < file.size();) {
    const ssize_t got = ::read(socket, file.data() + at, file.size() - at);
    if (got <= 0) ::_exit(9);
    at += static_cast<std::size_t>(got);
  }
  return order;
}

// Greets, hears one order, and does this.
SpawnDecoder doing(std::function<void(int socket)> does) {
  return forked([does = std::move(does)](int socket) {
    greet(socket);
    hear(socket);
    does(socket);
  });
}

SpawnDecoder saying(DecodeAnswer answer, std::string bytes = {}) {
  return doing([answer, bytes](int socket) {
    say(socket, &answer, sizeof answer);
    if (!bytes.empty()) say(socket, bytes.data(), bytes.size());
    hear(socket);
  });
}

const SpawnDecoder kReal = forked([](int socket) {
  answer_decode_orders(socket, confine_decoder());
  ::_exit(0);
});

// One after the other; the last one for all that follow.
SpawnDecoder in_turn(std::vector<SpawnDecoder> all) {
  return [all = std::move(all), next = std::size_t{0}](int socket) mutable {
    const std::size_t now = std::min(next++, all.size() - 1);
    return all[now](socket);
  };
}

std::string refusal(MediaDecoders& decoders) {
  const auto picture = decoders.picture(test_png(5, 3));
  EXPECT_FALSE(picture);
  if (picture) return {};
  EXPECT_EQ(picture.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(picture.error().field, "messages");
  return picture.error().message;
}

TEST(MediaDecoders, DecodeAsTheirDecodersDo) {
  MediaDecoders decoders(kReal, kLong);
  decoders.expect_files();
  const std::string png = test_png(700, 500, 2);
  const auto there = decoders.picture(png);
  const auto here = decode_picture(png);
  ASSERT_TRUE(there && here) << there.error().message;
  EXPECT_EQ(there->width, 700u);
  EXPECT_EQ(there->height, 500u);
  EXPECT_EQ(there->rgb, here->rgb);
  const std::string wav = test_wav(20'000);
  const auto samples = decoders.sound(wav, 16'000);
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_EQ(*samples, *decode_sound(wav, 16'000));
  EXPECT_EQ(decoders.metrics().restarts.value(), 0u) << "one process for all of them";
}

TEST(MediaDecoders, RefuseWithTheSameWords) {
  MediaDecoders decoders(kReal, kLong);
  for (const std::string& file : {std::string("no picture"), png_head(10'000, 10'000) + png_chunk("IDAT", "x"),
                                  std::string(kSizeLimit<"media_bytes"> + 1, 'x')}) {
    const auto there = decoders.picture(file);
    const auto here = decode_picture(file);
    ASSERT_FALSE(there);
    EXPECT_EQ(there.error().message, here.error().message);
    EXPECT_EQ(there.error().field, here.error().field);
    EXPECT_EQ(decoders.sound(file, 16'000).error().message, decode_sound(file, 16'000).error().message);
  }
  EXPECT_EQ(decoders.metrics().restarts.value(), 0u);
}

TEST(MediaDecoders, ACrashIsARefusalAndTheNextOneWorks) {
  for (const int number : {SIGSEGV, SIGKILL, SIGABRT}) {
    const auto dies = doing([number](int) {
      std::signal(number, SIG_DFL);
      ::raise(number);
    });
    MediaDecoders decoders(in_turn({dies, kReal}), kLong);
    decoders.expect_files();
    EXPECT_EQ(refusal(decoders), "a picture cannot be decoded (its decoder failed); PNG, JPEG, GIF and BMP are read");
    EXPECT_EQ(decoders.metrics().restarts.value(), 1u);
    EXPECT_TRUE(decoders.picture(test_png(5, 3)));
    EXPECT_EQ(decoders.metrics().restarts.value(), 1u);
  }
}

// However late it runs, it has greeted.
SpawnDecoder greeted(std::function<void(int socket)> does) {
  return [spawn = forked(std::move(does))](int socket) {
    greet(socket);
    return spawn(socket);
  };
}

TEST(MediaDecoders, OneThatHangsIsEndedAndReplaced) {
  const auto hangs = greeted([](int socket) {
    hear(socket);
    ::pause();
  });
  const auto deaf = greeted([](int) { ::pause(); });  // the order fills the socket
  for (const auto& spawn : {hangs, deaf}) {
    MediaDecoders decoders(spawn, milliseconds(50));
    decoders.expect_files();
    for (const std::uint64_t times : {1u, 2u}) {
      const auto sound = decoders.sound(test_wav(2'000'000), 16'000);
      ASSERT_FALSE(sound);
      EXPECT_EQ(sound.error().message,
                "a sound cannot be decoded (it takes longer than 50 ms); WAV, MP3 and FLAC are read");
      EXPECT_EQ(decoders.metrics().restarts.value(), times);
    }
  }
}

TEST(MediaDecoders, NonsenseIsNotBelieved) {
  const std::uint64_t most = ~std::uint64_t{0};
  const std::vector<SpawnDecoder> liars{
      saying({}),  // it greets again
      saying({.mark = 1, .kind = DecodeAnswer::decoded, .width = 1, .height = 1, .bytes = 3}, "abc"),
      saying({.kind = DecodeAnswer::decoded, .width = 5, .height = 3, .bytes = most}),
      saying({.kind = DecodeAnswer::decoded, .width = 20'000, .height = 20'000, .bytes = 1'200'000'000}),
      saying({.kind = DecodeAnswer::decoded, .width = 5, .height = 3, .bytes = 12}, "abcdefghijkl"),
      saying({.kind = 9, .bytes = 3}, "abc"),
      saying({.kind = DecodeAnswer::refused, .bytes = most}),
      saying({.kind = DecodeAnswer::refused, .bytes = 5}, "\x1b[2Jx"),
      doing([](int socket) { say(socket, "abc", 3); }),  // and ends
      doing([](int socket) {                             // too few pixels
        const DecodeAnswer answer{.kind = DecodeAnswer::decoded, .width = 5, .height = 3, .bytes = 45};
        say(socket, &answer, sizeof answer);
        say(socket, "abc", 3);
      }),
  };
  for (std::size_t i = 0; i < liars.size(); ++i) {
    MediaDecoders decoders(in_turn({liars[i], kReal}), kLong);
    decoders.expect_files();
    EXPECT_NE(refusal(decoders).find("its decoder failed"), std::string::npos) << i;
    EXPECT_EQ(decoders.metrics().restarts.value(), 1u) << i;
    EXPECT_TRUE(decoders.picture(test_png(5, 3))) << i;
  }
}

TEST(MediaDecoders, WhatIsSaidUnaskedIsNoAnswerToTheNext) {
  const auto chatters = greeted([](int socket) { hear(socket); });
  const auto spawn = [&chatters](int socket) {
    const pid_t id = chatters(socket);
    const DecodeAnswer answer{.kind = DecodeAnswer::decoded, .width = 1, .height = 1, .bytes = 3};
    say(socket, &answer, sizeof answer);
    say(socket, "abc", 3);
    return id;
  };
  MediaDecoders decoders(in_turn({spawn, kReal}), kLong);
  decoders.expect_files();
  const auto picture = decoders.picture(test_png(5, 3));
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->width, 5u);
  EXPECT_EQ(decoders.metrics().restarts.value(), 1u);
}

TEST(MediaDecoders, SamplesThatAreNoneAreRefused) {
  const float samples[] = {0, 1e30f};
  MediaDecoders decoders(saying({.kind = DecodeAnswer::decoded, .bytes = sizeof samples},
                                std::string(reinterpret_cast<const char*>(samples), sizeof samples)),
                         kLong);
  EXPECT_NE(decoders.sound(test_wav(2000), 16'000).error().message.find("its decoder failed"), std::string::npos);
  EXPECT_EQ(decoders.metrics().restarts.value(), 1u);
}

TEST(MediaDecoders, OneThatIsKilledWhileItWaitsIsReplacedUnnoticed) {
  pid_t last = 0;
  MediaDecoders decoders(
      [&last](int socket) {
        last = kReal(socket);
        return last;
      },
      kLong);
  decoders.expect_files();
  for (const std::uint64_t times : {1u, 2u}) {
    ::kill(last, SIGKILL);
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(last), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(decoders.picture(test_png(5, 3)));
    EXPECT_EQ(decoders.metrics().restarts.value(), times);
  }
}

TEST(MediaDecoders, WhereNoneCanBeStartedTheServerDecodesItself) {
  const std::vector<SpawnDecoder> none{[](int) { return 0; }, forked([](int) {}),
                                       forked([](int socket) { say(socket, "I am no decoder of yours", 24); })};
  for (const SpawnDecoder& spawn : none) {
    MediaDecoders decoders(spawn, kLong);
    decoders.expect_files();
    EXPECT_TRUE(decoders.picture(test_png(5, 3)));
    EXPECT_TRUE(decoders.sound(test_wav(2000), 16'000));
    EXPECT_EQ(decoders.metrics().restarts.value(), 0u);
  }
}

TEST(MediaDecoders, NoClientBringsItAboutThatTheServerDecodesItself) {
  const SpawnDecoder none = [](int) { return 0; };
  MediaDecoders decoders(in_turn({doing([](int) { ::raise(SIGKILL); }), none, none, none, kReal}), kLong);
  decoders.expect_files();
  EXPECT_NE(refusal(decoders).find("its decoder failed"), std::string::npos);
  decoders.expect_files();  // of another model
  const auto none_there = decoders.picture(test_png(5, 3));
  ASSERT_FALSE(none_there);
  EXPECT_EQ(none_there.error().code, ErrorCode::overloaded);
  EXPECT_GT(none_there.error().retry_after, Duration::zero());
  EXPECT_TRUE(decoders.picture(test_png(5, 3))) << "there is one again";
}

TEST(MediaDecoders, EachThreadHasAProcessOfItsOwn) {
  MediaDecoders decoders(kReal, kLong);
  const std::string png = test_png(300, 200);
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (int& count : good) {
    threads.emplace_back([&decoders, &png, &count] {
      for (int i = 0; i < 20; ++i) count += decoders.picture(png) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 20));
  EXPECT_EQ(decoders.metrics().restarts.value(), 0u);
}

}  // namespace
}  // namespace chasqui
