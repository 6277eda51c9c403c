#include "pull/repo_name.h"

#include <gtest/gtest.h>

namespace chasqui::pull {
namespace {

std::string read(std::string_view typed) {
  const auto name = read_repo_name(typed);
  return name ? name->repo + '|' + name->quant : name.error().message;
}

TEST(RepoName, IsWrittenWithAUserAndPerhapsAQuantization) {
  EXPECT_EQ(read("ggml-org/gemma-3-1b-it-GGUF"), "ggml-org/gemma-3-1b-it-GGUF|");
  EXPECT_EQ(read("user/Repo_1.5-GGUF:q8_0"), "user/Repo_1.5-GGUF|q8_0");
  EXPECT_EQ(read("hf.co/user/repo:UD-Q4_K_XL"), "user/repo|UD-Q4_K_XL");
  EXPECT_EQ(read("huggingface.co/user/repo"), "user/repo|");
  EXPECT_EQ(read("https://huggingface.co/user/repo"), "user/repo|");
}

TEST(RepoName, OfAnotherFormIsRefusedWithTheRightOne) {
  for (const char* typed : {"", "repo", "a/b/c", "a/", "/b", "../b", "a/..", "a/.b", "a--b/c", "a/b--c",
                            "a/b:", "a/b:../c", "a/b:c/d", "a/b c", "a/b?x=1", "a/b.", "http://a/b", "a/b\n"}) {
    EXPECT_EQ(read(typed), "a model of Hugging Face is called USER/REPO or USER/REPO:QUANT; got " + std::string(typed));
  }
  EXPECT_FALSE(read_repo_name("a/" + std::string(97, 'b')));
}

}  // namespace
}  // namespace chasqui::pull
