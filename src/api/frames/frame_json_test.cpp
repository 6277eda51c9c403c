#include "api/frames/frame_json.h"

#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// The bodies of the frames in `bytes`, which must end with the last of them.
std::vector<json::object> frames_in(std::string_view bytes) {
  std::vector<json::object> out;
  while (!bytes.empty()) {
    std::size_t length = 0;
    for (std::size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    EXPECT_LE(length + 4, bytes.size());
    out.push_back(json::parse(bytes.substr(4, length)).as_object());
    bytes.remove_prefix(4 + length);
  }
  return out;
}

Event token_event(std::string text, Token token) {
  Event event;
  event.text = std::move(text);
  event.token = token;
  event.tokens = 1;
  return event;
}

TEST(FrameHead, says_what_a_frame_is_about) {
  const FrameHead head = read_frame_head(R"({"id":"a\"b","prompt":"x","stream":false,"metadata":{"k":[1]}})");
  EXPECT_FALSE(head.error);
  EXPECT_EQ(head.id, R"("a\"b")");
  EXPECT_EQ(head.event, "");
  EXPECT_FALSE(head.stream);
  EXPECT_FALSE(head.chat);
  EXPECT_EQ(head.metadata, R"({"k":[1]})");
}

TEST(FrameHead, keeps_numbers_and_strings_apart) {
  EXPECT_EQ(read_frame_head(R"({"id":1})").id, "1");
  EXPECT_EQ(read_frame_head(R"({"id":"1"})").id, "\"1\"");
  EXPECT_EQ(read_frame_head(R"({"id":-9223372036854775808})").id, "-9223372036854775808");
  EXPECT_EQ(read_frame_head(R"({"id":18446744073709551615})").id, "18446744073709551615");
}

TEST(FrameHead, names_the_id_of_a_frame_whose_other_fields_are_wrong) {
  const FrameHead head = read_frame_head(R"({"id":"x","stream":"yes"})");
  ASSERT_TRUE(head.error);
  EXPECT_EQ(head.id, "\"x\"");
  EXPECT_EQ(head.error->field, "stream");
}

TEST(FrameHead, refuses_a_model_with_a_name_longer_than_any) {
  const auto props_of = [](std::size_t bytes) {
    return read_frame_head(R"({"id":1,"event":"props","model":")" + std::string(bytes, 'x') + "\"}");
  };
  EXPECT_FALSE(props_of(kSizeLimit<"model_name_bytes">).error);
  const FrameHead head = props_of(kSizeLimit<"model_name_bytes"> + 1);
  ASSERT_TRUE(head.error);
  EXPECT_EQ(head.error->code, ErrorCode::not_found);
  EXPECT_EQ(head.error->message.find("xxxx"), std::string::npos);
}

TEST(FrameHead, keeps_no_more_of_an_id_than_shows_that_there_is_none) {
  const auto head_of = [](std::size_t bytes) {
    const std::string id(bytes, 's');
    return read_frame_head(R"({"id":1,"event":"session.list","session":")" + id + R"(","after":")" + id + "\"}");
  };
  constexpr std::size_t kMost = kSizeLimit<"named_id_bytes">;
  EXPECT_EQ(head_of(kMost).session.size(), kMost);
  const FrameHead head = head_of(100'000);
  EXPECT_FALSE(head.error);
  EXPECT_EQ(head.session.size(), kMost + 1);
  EXPECT_TRUE(head.has_after);
  EXPECT_EQ(head.after.size(), kMost + 1);
}

TEST(FrameHead, asks_for_one_answer) {
  for (const std::string_view body :
       {R"({"id":1,"n":2})", R"({"id":1,"n_cmpl":2})", R"({"id":1,"best_of":2})", R"({"id":1,"prompt":["a","b"]})"}) {
    const FrameHead head = read_frame_head(body);
    ASSERT_TRUE(head.error) << body;
    EXPECT_EQ(head.error->code, ErrorCode::invalid_request);
  }
  EXPECT_FALSE(read_frame_head(R"({"id":1,"n":1,"prompt":[1,2]})").error);
}

TEST(FrameHead, has_no_id_where_none_can_be_read) {
  for (const std::string_view body : {"", "[]", "{\"id\":", "{\"id\":null}", "{\"id\":[]}", "{\"id\":1.5}", "{}"}) {
    const FrameHead head = read_frame_head(body);
    EXPECT_TRUE(head.error) << body;
    EXPECT_EQ(head.id, "null") << body;
  }
}

TEST(FrameWriter, appends_one_frame_for_each_token_whatever_its_bytes) {
  const auto writer = make_frame_writer(read_frame_head(R"({"id":"é\n"})"));
  std::string out;
  writer->text(token_event("a\"\n", 7), out);
  writer->text(token_event("", 8), out);
  writer->text(token_event("ü", 9), out);
  const auto frames = frames_in(out);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0], json::parse(R"({"id":"é\n","event":"token","text":"a\"\n","token_id":7})"));
  EXPECT_EQ(frames[1].at("text"), "");
  EXPECT_EQ(frames[2].at("token_id"), 9);
}

TEST(FrameWriter, writes_a_token_without_growing_a_buffer_that_has_room) {
  const auto writer = make_frame_writer(read_frame_head(R"({"id":"a"})"));
  std::string out;
  out.reserve(4096);
  const char* const place = out.data();
  for (int i = 0; i < 40; ++i) writer->text(token_event("word ", i), out);
  EXPECT_EQ(out.data(), place);
}

TEST(FrameWriter, ends_with_reason_usage_and_metadata) {
  const FrameHead head = read_frame_head(R"({"id":3,"metadata":{"m":1}})");
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = FinishReason::stop;
  event.stop_string = "END";
  event.usage.prompt = 4;
  event.usage.completion = 2;
  const auto writer = make_frame_writer(head);
  std::string out;
  writer->end(event, out);
  out += writer->whole({Collected{"text", {}, {}, {}, event}});
  const auto frames = frames_in(out);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].at("reason"), "stop");
  EXPECT_EQ(frames[0].at("stop_string"), "END");
  EXPECT_EQ(frames[0].at("usage").at("total_tokens"), 6);
  EXPECT_EQ(frames[0].at("metadata"), json::parse(R"({"m":1})"));
  EXPECT_FALSE(frames[0].contains("text"));
  EXPECT_EQ(frames[1].at("text"), "text");
}

TEST(FrameError, names_code_field_and_when_to_come_back) {
  std::string out;
  append_error_frame(out, "\"a\"", Error{ErrorCode::quota_exceeded, "too many", "", microseconds(1500)});
  append_error_frame(out, "null", invalid_field("stop", "no"));
  const auto frames = frames_in(out);
  EXPECT_EQ(
      frames[0],
      json::parse(R"({"id":"a","event":"error","code":"quota_exceeded","message":"too many","retry_after_ms":2})"));
  EXPECT_EQ(frames[1].at("param"), "stop");
  EXPECT_TRUE(frames[1].at("id").is_null());
}

}  // namespace
}  // namespace chasqui
