#include "app/adapter_options.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

AdapterFlags plain(std::vector<std::string> files) { return {.plain = std::move(files), .scaled = {}}; }
AdapterFlags scaled(std::vector<std::string> files) { return {.plain = {}, .scaled = std::move(files)}; }

TEST(AdapterFlags, ANameIsThatOfTheFileUnlessItIsGiven) {
  const auto files = adapter_files(plain({"/a/b.c/tone.gguf", "x.gguf:brief", "/with:colon/y.gguf"}));
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ((*files)[0].name, "tone");
  EXPECT_EQ((*files)[0].path, "/a/b.c/tone.gguf");
  EXPECT_EQ((*files)[1].name, "brief");
  EXPECT_EQ((*files)[1].path, "x.gguf");
  EXPECT_EQ((*files)[2].name, "y");
  EXPECT_EQ((*files)[2].path, "/with:colon/y.gguf");
}

TEST(AdapterFlags, AScaleComesBeforeTheName) {
  const auto files = adapter_files(scaled({"x.gguf:0.5", "y.gguf:-2:odd"}));
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ((*files)[0].scale, 0.5f);
  EXPECT_EQ((*files)[0].name, "x");
  EXPECT_EQ((*files)[1].scale, -2.0f);
  EXPECT_EQ((*files)[1].name, "odd");
  EXPECT_EQ((*files)[1].path, "y.gguf");
}

TEST(AdapterFlags, WhatCannotBeIsRefusedByName) {
  for (const char* text : {"x.gguf", "x.gguf:", "x.gguf:fast", "x.gguf:1e9", "x.gguf:nan", ""}) {
    const auto files = adapter_files(scaled({text}));
    ASSERT_FALSE(files.has_value()) << text;
    EXPECT_EQ(files.error().field, "--lora-scaled");
  }
  EXPECT_FALSE(adapter_files(plain({"a/x.gguf", "b/x.gguf"})).has_value());
}

}  // namespace
}  // namespace chasqui
