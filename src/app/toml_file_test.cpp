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

TEST(TomlFile, EachValueHasItsLine) {
  const auto items = read_toml("# mine\n\na = 3\nb = [\n  1,\n  2]\n[serve]\nc = 'x'\n", "serve");
  ASSERT_TRUE(items.has_value()) << items.error().message;
  std::map<std::string, std::size_t> lines;
  for (const TomlItem& item : *items) lines[item.key] = item.line;
  EXPECT_EQ(lines, (std::map<std::string, std::size_t>{{"a", 3}, {"b", 4}, {"c", 8}}));
}

TEST(TomlFile, AListMayBeEmpty) { EXPECT_TRUE(values_of("a = []\n").at("a").empty()); }

TEST(TomlFile, WhatIsNoSettingIsRefusedByItsLineAndName) {
  for (const auto& [text, says] :
       std::map<std::string, std::string>{{"a = \n", "line 1"},
                                          {"x = 1\nx = 2\n", "line 2"},
                                          {"\n[bench]\na = 1\n", "line 2: there is no section [bench]"},
                                          {"[serve.more]\na = 1\n", "[more]"},
                                          {"\n\nday = 2026-11-21\n", "line 3: \"day\""},
                                          {"l = [\n  [1]]\n", "line 2: \"l\""}}) {
    const auto items = read_toml(text, "serve");
    ASSERT_FALSE(items.has_value()) << text;
    EXPECT_NE(items.error().message.find(says), std::string::npos) << items.error().message;
  }
}

}  // namespace
}  // namespace chasqui
