#include "app/toml_file.h"

#include <map>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::map<std::string, std::vector<std::string>> values_of(std::string_view text) {
  std::map<std::string, std::vector<std::string>> out;
  auto items = read_toml(text, "serve");
  EXPECT_TRUE(items.has_value()) << items.error().message;
  if (!items) return out;
  for (const TomlItem& item : *items) out[item.key] = item.values;
  return out;
}

TEST(TomlFile, ValuesComeAsIfTheyHadBeenTyped) {
  const auto items = values_of("a = 3 # three\nb = \"x # \\\"y\\\"\"\nc = true\nd = [1, 2.5, 'z']\n[serve]\ne = -1\n");
  EXPECT_EQ(items.at("a"), (std::vector<std::string>{"3"}));
  EXPECT_EQ(items.at("b"), (std::vector<std::string>{"x # \"y\""}));
  EXPECT_EQ(items.at("c"), (std::vector<std::string>{"true"}));
  EXPECT_EQ(items.at("d"), (std::vector<std::string>{"1", "2.5", "z"}));
  EXPECT_EQ(items.at("e"), (std::vector<std::string>{"-1"}));
}

TEST(TomlFile, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(values_of("\xef\xbb\xbfport = 3\n").at("port"), (std::vector<std::string>{"3"}));
}

TEST(TomlFile, AListMayBeEmpty) { EXPECT_TRUE(values_of("a = []\n").at("a").empty()); }

TEST(TomlFile, WhatIsNoSettingIsRefusedByItsName) {
  for (const auto& [text, says] : std::map<std::string, std::string>{{"a = \n", "line 1"},
                                                                     {"x = 1\nx = 2\n", "line 2"},
                                                                     {"[bench]\na = 1\n", "[bench]"},
                                                                     {"[serve.more]\na = 1\n", "[more]"},
                                                                     {"day = 2026-11-21\n", "\"day\""},
                                                                     {"l = [[1]]\n", "\"l\""}}) {
    const auto items = read_toml(text, "serve");
    ASSERT_FALSE(items.has_value()) << text;
    EXPECT_NE(items.error().message.find(says), std::string::npos) << items.error().message;
  }
}

}  // namespace
}  // namespace chasqui
