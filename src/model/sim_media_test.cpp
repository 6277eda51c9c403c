#include "model/sim_media.h"

#include <gtest/gtest.h>

#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

MediaFilePtr file(MediaKind kind, std::string bytes) {
  return std::make_shared<const MediaFile>(MediaFile{kind, std::move(bytes)});
}

class SimMediaTest : public testing::Test {
 protected:
  Result<MediaPrompt> read(const std::string& text, const std::vector<MediaFilePtr>& files) const {
    return media_.read(text, AddSpecial::yes, ParseSpecial::yes, files);
  }

  std::shared_ptr<const SimTokenizer> tokenizer_ = std::make_shared<SimTokenizer>();
  SimMedia media_{tokenizer_};
  const std::string marker_{media_.marker()};
  const MediaFilePtr picture_ = file(MediaKind::picture, "\x89PNG\r\n\x1a\none");
  const MediaFilePtr sound_ = file(MediaKind::sound, "ID3 two");
};

TEST_F(SimMediaTest, PutsUnitsWhereTheMarkersAre) {
  const auto prompt = read("a" + marker_ + "b" + marker_, {picture_, sound_});
  ASSERT_TRUE(prompt);
  ASSERT_EQ(prompt->units->size(), 2u);
  EXPECT_EQ(prompt->tokens.size(), 2u + 2 * SimMedia::kPositions);
  EXPECT_EQ(prompt->units->at(0).begin, 1);
  EXPECT_EQ(prompt->units->at(1).begin, 2 + SimMedia::kPositions);
  EXPECT_EQ(prompt->units->at(1).kind, MediaKind::sound);
  EXPECT_TRUE(fits_prompt(prompt->units, prompt->tokens, tokenizer_->vocabulary()));
  EXPECT_NE(prompt->units->at(0).identity, prompt->units->at(1).identity);
}

TEST_F(SimMediaTest, RefusesFilesOfAnotherKindAndWrongNumbersOfMarkers) {
  EXPECT_FALSE(read(marker_, {file(MediaKind::picture, "GIF89a")}));
  EXPECT_FALSE(read(marker_, {file(MediaKind::sound, picture_->bytes)}));
  EXPECT_FALSE(read("a", {picture_}));
  EXPECT_FALSE(read(marker_ + marker_, {picture_}));
  const auto text = read("a", {});
  ASSERT_TRUE(text);
  EXPECT_EQ(text->units, nullptr);
}

}  // namespace
}  // namespace chasqui
