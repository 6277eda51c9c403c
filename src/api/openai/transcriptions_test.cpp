#include "api/openai/transcriptions.h"

#include <gtest/gtest.h>

#include "api/core/fake_node.h"

namespace chasqui {
namespace {

std::string part(const std::string& head, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
}
const std::string kEnd = "--b--\r\n";

TEST(TranscriptionForm, FieldsAreWhatTheySay) {
  const auto read = json_of_form(part("name=\"file\"; filename=\"a.wav\"", std::string("RI\0F", 4)) +
                                     part("name=\"temperature\"", "0.5") + part("name=\"stream\"", "true") +
                                     part("name=\"prompt\"", "7") + part("name=\"stop[]\"", "8") +
                                     part("name=\"include[]\"", "logprobs") + part("name=\"include[]\"", "2") + kEnd,
                                 "b");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, R"({"file":"UkkARg==","temperature":5E-1,"stream":true,"prompt":"7","stop":["8"],)"
                   R"("include":["logprobs",2]})");
  EXPECT_FALSE(json_of_form("--c--", "b"));
}

TEST(TranscriptionForm, WhatIsNoTextIsRefusedByItsName) {
  const auto read = json_of_form(part("name=\"prompt\"", "caf\xe9") + kEnd, "b");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().field, "prompt");
  const auto deep = json_of_form(part("name=\"x\"", std::string(100'000, '[')) + kEnd, "b");
  ASSERT_TRUE(deep);
  EXPECT_EQ(deep->size(), 100'000 + std::string_view(R"({"x":""})").size());
}

TEST(TranscriptionForm, OneFieldMayBeBothAndTheLastCounts) {
  const auto read = json_of_form(part("name=\"x[]\"", "1") + part("name=\"x\"", "a") + part("name=\"x[]\"", "b") +
                                     part("name=\"\"", "c") + part("name=\"file\"", "") + kEnd,
                                 "b");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, R"({"x":["b"],"":"c","file":""})");
}

TEST(Transcription, IsAChatAboutTheSound) {
  FakeNode fake;
  const auto answer = prepare_transcription(fake.served, {}, R"({"file":"UklGRgAAAABXQVZFZm10IA==","language":"en"})");
  ASSERT_TRUE(answer) << answer.error().message;
  const Request& request = *answer->request;
  ASSERT_TRUE(request.media);
  ASSERT_EQ(request.media->size(), 1u);
  EXPECT_EQ(request.media->front().kind, MediaKind::sound);
  const auto before = std::span(request.prompt).first(static_cast<std::size_t>(request.media->front().begin));
  EXPECT_TRUE(detokenize(*fake.model.tokenizer, {before.begin(), before.end()})
                  .ends_with("user\nTranscribe audio to text (language: en)"));
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_FALSE(answer->stream);
  const auto picture = prepare_transcription(fake.served, {}, R"({"file":"iVBORw0KGgo="})");
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().field, "file");
}

}  // namespace
}  // namespace chasqui
