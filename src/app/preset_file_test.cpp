#include "app/preset_file.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using Items = std::vector<PresetItem>;

TEST(PresetFile, HasASectionForEachModelAndOneForAll) {
  const auto preset = read_preset(
      "version = 1\n"
      "; global\n"
      "[*]\n"
      "c = 8192\n"
      "\r\n"
      "[ggml-org/MY-MODEL-GGUF:Q8_0]   # behind it\r\n"
      "  n-gpu-layers = 123 ; as many\n"
      "jinja=true\n"
      "model = /models/a#1;b.gguf\n"
      "LLAMA_ARG_CACHE_RAM =\n"
      "[ other ]\n"
      "c = 1\n"
      "c = 2");
  ASSERT_TRUE(preset) << preset.error().message;
  EXPECT_EQ(preset->all.items, (Items{{"c", "8192", 4}}));
  ASSERT_EQ(preset->sections.size(), 2U);
  EXPECT_EQ(preset->sections[0].name, "ggml-org/MY-MODEL-GGUF:Q8_0");
  EXPECT_EQ(preset->sections[0].items, (Items{{"n-gpu-layers", "123", 7},
                                              {"jinja", "true", 8},
                                              {"model", "/models/a#1;b.gguf", 9},
                                              {"LLAMA_ARG_CACHE_RAM", "", 10}}));
  EXPECT_EQ(preset->sections[1].name, "other");
  EXPECT_EQ(preset->sections[1].items, (Items{{"c", "2", 13}})) << "the last one holds";
}

TEST(PresetFile, MayBeginWithAByteOrderMark) {
  const auto preset = read_preset("\xef\xbb\xbf[a]\r\nc = 1\r\n");
  ASSERT_TRUE(preset) << preset.error().message;
  ASSERT_EQ(preset->sections.size(), 1U);
  EXPECT_EQ(preset->sections[0].name, "a");
  EXPECT_FALSE(read_preset("[a]\n\xef\xbb\xbf[b]\n")) << "in the middle it is none";
}

TEST(PresetFile, AMistakeNamesItsLine) {
  const auto why = [](const char* text) {
    const auto preset = read_preset(text);
    return preset ? std::string() : preset.error().message;
  };
  EXPECT_EQ(why("[a]\nc 5"), "line 2 is neither [SECTION] nor KEY = VALUE");
  EXPECT_EQ(why("c = 5\n[a]"), "line 1 stands before the first [SECTION]");
  EXPECT_EQ(why("[a\n"), "line 1 begins like a section and is none: [SECTION]");
  EXPECT_EQ(why("[]\n"), "line 1 begins like a section and is none: [SECTION]");
  EXPECT_EQ(why("[a]\n[b]\n[a]\n"), "line 3 begins a section that there is already");
  EXPECT_EQ(why("[a]\n= 5"), "line 2 is neither [SECTION] nor KEY = VALUE");
  EXPECT_EQ(why(""), "");
}

}  // namespace
}  // namespace chasqui
