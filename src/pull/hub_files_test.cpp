#include "pull/hub_files.h"

#include <gtest/gtest.h>

namespace chasqui::pull {
namespace {

const std::string kSha1 = "0123456789abcdef0123456789abcdef01234567";
const std::string kSha256 = kSha1 + "0123456789abcdef01234567";

std::string entry(const std::string& path, const std::string& more = "") {
  return R"({"type":"file","path":")" + path + R"(","size":7,"oid":")" + kSha1 + '"' + more + "}";
}

TEST(HubFiles, AreThoseOfATree) {
  const std::string large = R"(,"lfs":{"oid":")" + kSha256 + R"(","size":5000000000,"pointerSize":135})";
  const auto files = read_files("[" + entry("README.md") + R"(,{"type":"directory","path":"q8","oid":")" + kSha1 +
                                R"("},)" + entry("q8/model-Q8_0.gguf", large) + "]");
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ(files->at(0).path, "README.md");
  EXPECT_EQ(files->at(0).bytes, 7U);
  EXPECT_EQ(files->at(0).oid, kSha1);
  EXPECT_FALSE(files->at(0).large || files->at(0).is_gguf());
  EXPECT_EQ(files->at(1).bytes, 5'000'000'000U);
  EXPECT_EQ(files->at(1).oid, kSha256);
  EXPECT_TRUE(files->at(1).large && files->at(1).is_gguf());
}

TEST(HubFiles, ThatCouldLeadElsewhereOrCannotBeCheckedAreLeftOut) {
  for (const char* path :
       {"", "/etc/passwd", "../x.gguf", "a/../../x.gguf", "a//b.gguf", "a/", "./a", "a/.", "..", "a\\u0000b"}) {
    const auto files = read_files("[" + entry(path) + "]");
    ASSERT_TRUE(files) << path;
    EXPECT_TRUE(files->empty()) << path;
  }
  for (const char* more : {R"(,"lfs":{"oid":"../../x","size":1})", R"(,"lfs":{"size":1})", R"(,"lfs":{"oid":7})"}) {
    EXPECT_TRUE(read_files("[" + entry("a.gguf", more) + "]")->empty()) << more;
  }
  EXPECT_TRUE(
      read_files(R"([7,{"type":"file","path":"a","size":-1,"oid":")" + kSha1 + R"("},{"type":"file"}])")->empty());
  for (const char* body : {"", "{}", "no JSON", "[", "7"}) EXPECT_FALSE(read_files(body)) << body;
  EXPECT_FALSE(read_files(std::string(100'000, '[')));
}

TEST(HubFiles, ARevisionIsACommit) {
  EXPECT_EQ(*read_commit(R"({"id":"a/b","sha":")" + kSha1 + R"("})"), kSha1);
  for (const char* body : {"", "[]", "{}", R"({"sha":7})", R"({"sha":"../../../../x"})", "<html>"}) {
    EXPECT_FALSE(read_commit(body)) << body;
  }
}

TEST(HubFiles, AListGoesOnWhereItsLinkLeads) {
  EXPECT_EQ(read_next_page(""), "");
  EXPECT_EQ(read_next_page("<https://hub/a?cursor=x%3D>; rel=\"next\""), "https://hub/a?cursor=x%3D");
  EXPECT_EQ(read_next_page("<https://hub/1>; rel=\"prev\", <https://hub/3>; rel=\"next\""), "https://hub/3");
  EXPECT_EQ(read_next_page("<https://hub/1>; rel=\"prev\""), "");
  EXPECT_EQ(read_next_page("<https://hub/1"), "");
}

TEST(HubFiles, NamesAreWrittenAsAddressesHaveThem) {
  EXPECT_EQ(in_address("a b/ä#?.gguf", true), "a%20b/%C3%A4%23%3F.gguf");
  EXPECT_EQ(in_address("refs/pr/1", false), "refs%2Fpr%2F1");
}

}  // namespace
}  // namespace chasqui::pull
