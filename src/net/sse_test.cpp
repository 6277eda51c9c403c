#include "net/sse.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

std::string event(std::string_view data, std::string_view name = {}, std::string_view id = {}) {
  std::string out;
  append_sse_event(out, data, name, id);
  return out;
}

TEST(Sse, WritesOneLine) { EXPECT_EQ(event("{}"), "data: {}\n\n"); }

TEST(Sse, SplitsLines) {
  EXPECT_EQ(event("a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(event("a\n"), "data: a\ndata: \n\n");
  EXPECT_EQ(event("\n\na"), "data: \ndata: \ndata: a\n\n");
  EXPECT_EQ(event(""), "data: \n\n");
}

TEST(Sse, NamesEvents) {
  EXPECT_EQ(event("x", "delta", "7"), "event: delta\nid: 7\ndata: x\n\n");
  EXPECT_EQ(event("x", "del\nta"), "event: delta\ndata: x\n\n");
}

TEST(Sse, WritesCommentsAndAppends) {
  std::string out = "before";
  append_sse_comment(out, "ping");
  append_sse_data_line(out, "[DONE]");
  EXPECT_EQ(out, "before: ping\n\ndata: [DONE]\n\n");
}

TEST(Sse, HeadersStopCachesAndProxies) {
  EXPECT_EQ(sse_headers().get("content-type"), "text/event-stream");
  EXPECT_EQ(sse_headers().get("x-accel-buffering"), "no");
}

}  // namespace
}  // namespace chasqui::net
