#include "pull/file_choice.h"

#include <gtest/gtest.h>

namespace chasqui::pull {
namespace {

std::vector<HubFile> files(const std::vector<std::string>& paths) {
  std::vector<HubFile> out;
  for (const std::string& path : paths) out.push_back({path, 1, std::string(64, 'a'), true});
  return out;
}

std::string choose(const std::vector<std::string>& paths, const std::string& quant, const std::string& file = "",
                   bool projector = true) {
  const auto chosen = choose_files(files(paths), {"user/repo", quant, file, projector});
  if (!chosen) return chosen.error().message;
  std::string out;
  for (const HubFile& one : chosen->files) out += one.path + ' ';
  for (const HubFile& one : chosen->projectors) out += '+' + one.path + ' ';
  return out;
}

TEST(FileChoice, IsThatOfServe) {
  const std::vector<std::string> all = {"README.md", "m-F16.gguf", "m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"};
  EXPECT_EQ(choose(all, ""), "m-Q4_K_M.gguf ");
  EXPECT_EQ(choose(all, "q8_0"), "m-Q8_0.gguf ");
  EXPECT_EQ(choose({"m-F16.gguf", "m-Q8_0.gguf"}, ""), "m-Q8_0.gguf ");
  EXPECT_EQ(choose({"b.gguf", "a.gguf"}, ""), "a.gguf ");
  EXPECT_EQ(choose(all, "", "m-F16.gguf"), "m-F16.gguf ");
  EXPECT_EQ(choose(all, "", "README.md"), "README.md ");
}

TEST(FileChoice, HasAllPartsOfAModel) {
  const std::vector<std::string> all = {"q8/m-Q8_0-00002-of-00003.gguf", "q8/m-Q8_0-00001-of-00003.gguf",
                                        "q8/m-Q8_0-00003-of-00003.gguf", "m-Q2_K.gguf"};
  const std::string parts =
      "q8/m-Q8_0-00001-of-00003.gguf q8/m-Q8_0-00002-of-00003.gguf q8/m-Q8_0-00003-of-00003.gguf ";
  EXPECT_EQ(choose(all, "Q8_0"), parts);
  EXPECT_EQ(choose(all, "", "q8/m-Q8_0-00002-of-00003.gguf"), parts);
  EXPECT_EQ(choose({"m-00001-of-00002.gguf"}, ""),
            "user/repo lacks m-00002-of-00002.gguf, a part of a model of 2 parts");
}

TEST(FileChoice, HasTheProjectorThatIsNearest) {
  const std::vector<std::string> all = {"m-Q4_K_M.gguf", "m-F16.gguf", "mmproj-m-F16.gguf", "mmproj-m-Q8_0.gguf",
                                        "other/mmproj-m-Q4_0.gguf"};
  EXPECT_EQ(choose(all, ""), "m-Q4_K_M.gguf +mmproj-m-Q8_0.gguf ");
  EXPECT_EQ(choose(all, "F16"), "m-F16.gguf +mmproj-m-F16.gguf ");
  EXPECT_EQ(choose(all, "", "m-F16.gguf"), "m-F16.gguf +mmproj-m-F16.gguf ");
  EXPECT_EQ(choose(all, "", "mmproj-m-F16.gguf"), "mmproj-m-F16.gguf ");
  EXPECT_EQ(choose(all, "", "", false), "m-Q4_K_M.gguf ");
  EXPECT_EQ(choose({"a/m-Q8_0.gguf", "a/mmproj-F32.gguf", "mmproj-Q8_0.gguf"}, ""),
            "a/m-Q8_0.gguf +a/mmproj-F32.gguf ");
}

TEST(FileChoice, SaysWhatThereIsInstead) {
  EXPECT_EQ(choose({"m-Q4_K_M.gguf", "m-Q8_0-00001-of-00001.gguf", "mmproj-m-F16.gguf"}, "q4_k_s"),
            "user/repo has no q4_k_s; it has Q4_K_M, Q8_0; did you mean Q4_K_M?");
  EXPECT_EQ(choose({"m-Q4_0.gguf"}, "", "m-Q4_1.gguf"),
            "user/repo has no file m-Q4_1.gguf; it has m-Q4_0.gguf; did you mean m-Q4_0.gguf?");
  EXPECT_EQ(choose({"config.json", "model.safetensors"}, "Q4_0"),
            "user/repo has no GGUF file; it has config.json, model.safetensors; repositories that have some are mostly "
            "called "
            "repo-GGUF");
  const std::string many = choose(std::vector<std::string>(41, "x.bin"), "");
  EXPECT_NE(many.find("x.bin and 1 more;"), many.npos) << many;
}

}  // namespace
}  // namespace chasqui::pull
