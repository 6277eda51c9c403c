#include "app/model_list.h"

#include <gtest/gtest.h>

#include "app/serve_options.h"

namespace chasqui {
namespace {

using Words = std::vector<std::string>;

class SectionArgumentsTest : public testing::Test {
 protected:
  SectionArgumentsTest() { add_serve_options(app_, config_); }

  Result<SectionArguments> read(PresetSection all, PresetSection section) const {
    return section_arguments(app_, all, section);
  }
  std::string why(const std::string& key, const std::string& value) const {
    const auto read_one = read({"*", {}}, {"a", {{key, value}}});
    return read_one ? std::string() : read_one.error().message;
  }

  CLI::App app_;
  ServeConfig config_;
};

TEST_F(SectionArgumentsTest, ASectionIsStrongerThanWhatHoldsForAllByWhicheverName) {
  const auto arguments = read({"*", {{"c", "8192"}, {"LLAMA_ARG_N_PARALLEL", "2"}, {"temperature", "1"}}},
                              {"a", {{"LLAMA_ARG_CTX_SIZE", "1024"}, {"np", "4"}, {"temp", "0.5"}}});
  ASSERT_TRUE(arguments) << arguments.error().message;
  const Words& words = arguments->arguments;
  const auto value_of = [&words](const std::string& flag) {
    const auto at = std::ranges::find(words, flag);
    return at == words.end() ? std::string() : *(at + 1);
  };
  EXPECT_EQ(words.size(), 6U);
  EXPECT_EQ(value_of("--ctx-size"), "1024");
  EXPECT_EQ(value_of("--parallel"), "4");
  EXPECT_EQ(value_of("--temp"), "0.5");
}

TEST_F(SectionArgumentsTest, FlagsAreTrueOrFalse) {
  const auto words = [this](const std::string& key, const std::string& value) {
    const auto arguments = read({"*", {{key, "true"}}}, {"a", {{key, value}}});
    return arguments ? arguments->arguments : Words{arguments.error().message};
  };
  EXPECT_EQ(words("mlock", "true"), Words{"--mlock"});
  EXPECT_EQ(words("mlock", "off"), Words());
  EXPECT_EQ(words("cache-prompt", "false"), Words{"--no-cache-prompt"});
  EXPECT_EQ(words("no-mmap", "0"), Words());
  EXPECT_EQ(why("mlock", "maybe"), "mlock must be true or false");
}

TEST_F(SectionArgumentsTest, AFlagOfASectionIsStrongerThanItsContraryForAll) {
  const auto words = [this](const PresetSection& all, const PresetSection& section) {
    const auto arguments = read(all, section);
    return arguments ? arguments->arguments : Words{arguments.error().message};
  };
  EXPECT_EQ(words({"*", {{"no-mmap", "true"}}}, {"a", {{"mmap", "true"}}}), Words{"--mmap"});
  EXPECT_EQ(words({"*", {{"warmup", "true"}}}, {"a", {{"no-warmup", "true"}}}), Words{"--no-warmup"});
  EXPECT_EQ(words({"*", {{"mmap", "false"}}}, {"a", {{"no-mmap", "false"}}}), Words());
}

TEST_F(SectionArgumentsTest, WhatIsOfTheWholeServerHasNoEffectAndIsSaid) {
  const auto arguments = read({"*", {}}, {"a", {{"port", "1"}, {"api-key", "x"}, {"stop-timeout", "5"}}});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->arguments, Words());
  EXPECT_EQ(arguments->notes,
            (Words{"port has no effect: it is of the whole server", "api-key has no effect: it is of the whole server",
                   "stop-timeout has no effect: models have no process of their own, and caches are not listed"}));
  EXPECT_EQ(why("ctx-sise", "1"), "there is no flag \"ctx-sise\"");
}

TEST_F(SectionArgumentsTest, EachFlagHasTheLineThatHolds) {
  const auto arguments = read({"*", {{"c", "8192", 2}, {"mlock", "true", 3}}}, {"a", {{"ctx-size", "1024", 6}}});
  ASSERT_TRUE(arguments) << arguments.error().message;
  EXPECT_EQ(arguments->lines, (std::map<std::string, int>{{"--ctx-size", 6}, {"--mlock", 3}}));
  const auto wrong = read({"*", {}}, {"a", {{"ctx-sise", "1", 4}}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "there is no flag \"ctx-sise\" (line 4)");
}

TEST_F(SectionArgumentsTest, ASectionSaysWhetherItsModelIsLoadedAtStart) {
  EXPECT_FALSE(read({"*", {}}, {"a", {}})->at_start);
  EXPECT_TRUE(read({"*", {{"load-on-startup", "true"}}}, {"a", {}})->at_start);
  EXPECT_FALSE(read({"*", {{"load-on-startup", "true"}}}, {"a", {{"load-on-startup", "0"}}})->at_start);
  EXPECT_EQ(why("load-on-startup", "soon"), "load-on-startup must be true or false");
}

}  // namespace
}  // namespace chasqui
