// Lines of batches: what is run, and what is refused with its line and field.
#include "api/batch/batch_line.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr const char* kEndpoint = "/v1/completions";

std::string line_of(const std::string& id, const std::string& body = R"({"prompt":"x"})") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/completions","body":)" + body + "}";
}

class CheckLinesTest : public testing::Test {
 protected:
  CheckLinesTest() {
    std::string pattern = testing::TempDir() + "check-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    folder_ = *JobFolder::open(path_);
  }
  ~CheckLinesTest() override { std::filesystem::remove_all(path_); }

  CheckedLines check(const std::string& text) {
    EXPECT_TRUE(folder_->put("input", text));
    const auto file = folder_->open_file("input");
    return *check_lines(*file, kEndpoint);
  }

  std::string path_;
  std::shared_ptr<JobFolder> folder_;
};

TEST(BatchLine, ItsBodyStaysAsItWas) {
  BatchLine line;
  LineFault fault;
  const std::string body = R"({"prompt":"a\n\"b\"","b":[1,2.5,null],"a":{"z":1,"y":2}})";
  ASSERT_TRUE(BatchLineReader(kEndpoint).read(line_of("id", body), 1, line, fault)) << fault.message;
  EXPECT_EQ(line.custom_id, "id");
  EXPECT_EQ(line.body, R"({"prompt":"a\n\"b\"","b":[1,2.5E0,null],"a":{"z":1,"y":2}})");
}

TEST(BatchLine, AFaultNamesLineAndField) {
  struct Case {
    std::string line, code, param, says;
  };
  const Case cases[] = {
      {"nonsense", "invalid_json_line", "", "line 4: "},
      {"[]", "invalid_json_line", "", "object"},
      {"{}", "invalid_field", "custom_id", "custom_id must be"},
      {line_of(""), "invalid_field", "custom_id", "1 to 256"},
      {line_of(std::string(257, 'x')), "invalid_field", "custom_id", "1 to 256"},
      {R"({"custom_id":7})", "invalid_field", "custom_id", "string"},
      {R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})", "invalid_method", "method", "POST"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{}})", "mismatched_url", "url", kEndpoint},
      {R"({"custom_id":"a","method":"POST","url":"/v1/completions"})", "invalid_field", "body", "object"},
      {line_of("a", "[]"), "invalid_field", "body", "object"},
      {line_of("a", R"({"stream":true})"), "invalid_field", "body.stream", "false"},
      {line_of("a", R"({"model":3})"), "invalid_field", "body.model", "string"},
  };
  for (const Case& one : cases) {
    BatchLine line;
    LineFault fault;
    ASSERT_FALSE(BatchLineReader(kEndpoint).read(one.line, 4, line, fault)) << one.line;
    EXPECT_EQ(fault.code, one.code) << one.line;
    EXPECT_EQ(fault.param, one.param) << one.line;
    EXPECT_EQ(fault.line, 4U);
    EXPECT_NE(fault.message.find(one.says), std::string::npos) << fault.message;
    EXPECT_TRUE(fault.message.starts_with("line 4: ")) << fault.message;
  }
}

TEST_F(CheckLinesTest, AGoodFileHasNoFaults) {
  const CheckedLines found = check(line_of("a") + "\n\n" + line_of("b") + "\r\n" + line_of("c"));
  EXPECT_EQ(found.lines, 3U);
  EXPECT_TRUE(found.faults.empty());
}

TEST_F(CheckLinesTest, IdsAreUnique) {
  const CheckedLines found = check(line_of("a") + "\n" + line_of("b") + "\n" + line_of("a") + "\n");
  ASSERT_EQ(found.faults.size(), 1U);
  EXPECT_EQ(found.faults[0].code, "duplicate_custom_id");
  EXPECT_EQ(found.faults[0].line, 3U);
}

TEST_F(CheckLinesTest, AFileWithoutLinesIsFaulty) {
  for (const std::string text : {"", "\n\n", "\xEF\xBB\xBF\n"}) {
    const CheckedLines found = check(text);
    ASSERT_EQ(found.faults.size(), 1U);
    EXPECT_EQ(found.faults[0].code, "empty_file");
  }
}

TEST_F(CheckLinesTest, FaultsAreCountedUpToALimit) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "no\n";
  EXPECT_EQ(check(text).faults.size(), 100U);
  const CheckedLines huge = check(line_of("a") + "\n" + std::string(5'000'000, '[') + "\n");
  ASSERT_EQ(huge.faults.size(), 1U);
  EXPECT_EQ(huge.faults[0].code, "line_too_long");
  EXPECT_EQ(huge.faults[0].line, 2U);
}

TEST_F(CheckLinesTest, ABatchHasSoManyLinesAndNoMore) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += line_of(std::to_string(i)) + "\n";
  EXPECT_TRUE(check(text).faults.empty());
  const CheckedLines found = check(text + line_of("one more"));
  ASSERT_EQ(found.faults.size(), 1U);
  EXPECT_EQ(found.faults[0].code, "too_many_lines");
  EXPECT_EQ(found.faults[0].line, 50'001U);
}

}  // namespace
}  // namespace chasqui
