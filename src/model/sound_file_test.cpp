#include "model/sound_file.h"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "model/test_files.h"

namespace chasqui {
namespace {

std::string sound_refusal(const std::string& bytes) {
  const auto samples = decode_sound(bytes, 16000);
  EXPECT_FALSE(samples);
  if (samples) return {};
  EXPECT_EQ(samples.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(samples.error().field, "messages");
  return samples.error().message;
}

TEST(SoundFile, DecodesToSamples) {
  const auto samples = decode_sound(test_wav(1600), 16000);
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 1600u);
  EXPECT_NEAR((*samples)[10], 2000 / 32768.0, 1e-4);
}

TEST(SoundFile, ChangesTheRate) {
  const auto samples = decode_sound(test_wav(8000, 8000), 16000);
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_NEAR(static_cast<double>(samples->size()), 16000, 100);
}

TEST(SoundFile, RefusesWhatIsNoSound) {
  EXPECT_NE(sound_refusal("").find("WAV, MP3 and FLAC"), std::string::npos);
  EXPECT_NE(sound_refusal("this is no sound at all").find("WAV, MP3 and FLAC"), std::string::npos);
  EXPECT_NE(sound_refusal(test_png(3, 3)).find("cannot be decoded"), std::string::npos);
}

TEST(SoundFile, RefusesWhatIsTooLongOrTooShort) {
  EXPECT_NE(sound_refusal(test_wav(319)).find("shorter than 0.02"), std::string::npos);
  EXPECT_TRUE(decode_sound(test_wav(320), 16000));
  // 20 samples a second: few bytes, and 11 minutes.
  EXPECT_NE(sound_refusal(test_wav(20 * 660, 20)).find("longer than 600 seconds"), std::string::npos);
}

TEST(SoundFile, AHeaderThatLiesIsNotBelieved) {
  const std::string lie = wav_head(2'000'000'000, 16000) + std::string(8000, '\1');
  const auto samples = decode_sound(lie, 16000);
  if (samples) {
    EXPECT_LE(samples->size(), 600u * 16000);
  }
}

TEST(SoundFile, EveryBeginningAndEveryMutationIsAnAnswer) {
  const std::string whole = test_wav(800);
  std::mt19937 dice(1);
  for (std::size_t length = 0; length < whole.size(); length += length < 64 ? 1 : 37) {
    const auto samples = decode_sound(whole.substr(0, length), 16000);
    if (!samples) {
      EXPECT_FALSE(samples.error().message.empty());
    }
  }
  for (int i = 0; i < 1000; ++i) {
    std::string mutated = whole;
    for (int n = 0; n <= i % 4; ++n) mutated[dice() % (n == 0 ? 48 : mutated.size())] = static_cast<char>(dice());
    const auto samples = decode_sound(mutated, 16000);
    if (!samples) continue;
    for (const float sample : *samples) ASSERT_TRUE(std::isfinite(sample) && std::abs(sample) <= 16);
  }
}

}  // namespace
}  // namespace chasqui
