#include "cli/found_models.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cli/model_files.h"

namespace chasqui::cli {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

const std::string kDigest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kConfig = "c123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

class FoundModels : public testing::Test {
 protected:
  FoundModels() {
    std::string made = (fs::temp_directory_path() / "chasqui-found-XXXXXX").string();
    EXPECT_NE(::mkdtemp(made.data()), nullptr);
    root_ = made;
    folders_.ollama = {(root_ / "ollama").string()};
    folders_.hub.hub = {(root_ / "hub").string()};
    folders_.hub.plain = {(root_ / "plain").string()};
  }
  ~FoundModels() override { fs::remove_all(root_); }

  void write(const fs::path& below, const std::string& text) const {
    fs::create_directories((root_ / below).parent_path());
    std::ofstream(root_ / below) << text;
  }
  void manifest(const std::string& below, const std::string& digest, const std::string& more = "") const {
    write("ollama/manifests/" + below,
          R"({"config":{"digest":"sha256:)" + kConfig + R"("},"layers":[)" + more +
              R"({"mediaType":"application/vnd.ollama.image.template","digest":"sha256:00"},)"
              R"({"mediaType":"application/vnd.ollama.image.model","digest":")" +
              digest + R"("}]})");
  }
  void blobs() const {
    write("ollama/blobs/sha256-" + kDigest, "GGUF of Ollama");
    write("ollama/blobs/sha256-" + kConfig, R"({"file_type":"Q4_K_M"})");
  }
  // As Hugging Face's clients lay it out: a link from the snapshot to the blob.
  void hub(const std::string& repo, const std::string& commit, const std::string& file, const std::string& text) const {
    write("hub/" + repo + "/blobs/" + file, text);
    const fs::path link = root_ / "hub" / repo / "snapshots" / commit / file;
    fs::create_directories(link.parent_path());
    fs::create_symlink(root_ / "hub" / repo / "blobs" / file, link);
  }
  // Below the test's folder, or what the error says.
  std::string path(const std::string& name) const {
    const auto found = find_model(folders_, name);
    return found ? fs::path(found->path).lexically_relative(root_).string() : found.error().message;
  }
  std::string in_hub(const std::string& name, const std::string& file = "") const {
    const auto found = find_in_hub(folders_.hub, name, file);
    return found ? fs::path(found->path).lexically_relative(root_).string() : found.error().message;
  }
  Names names() const {
    Names out;
    for (const FoundModel& model : find_models(folders_)) out.push_back(model.name);
    return out;
  }

  fs::path root_;
  ModelFolders folders_;
};

TEST_F(FoundModels, OllamasNamesAreThoseThatItsUsersType) {
  blobs();
  const std::string digest = "sha256:" + kDigest;
  manifest("registry.ollama.ai/library/llama3/latest", digest);
  manifest("registry.ollama.ai/library/llama3/1b", digest);
  manifest("registry.ollama.ai/someone/tuned/v2", digest,
           R"({"mediaType":"application/vnd.ollama.image.adapter","digest":"sha256:11"},)");
  manifest("hf.co/user/Repo-GGUF/Q8_0", digest);
  for (const char* name :
       {"llama3", "llama3:latest", "llama3:1b", "library/llama3", "Llama3:1B", "someone/tuned:v2",
        "hf.co/user/Repo-GGUF:Q8_0", "hf.co/user/repo-gguf:q8_0", "registry.ollama.ai/library/llama3:1b"}) {
    EXPECT_EQ(path(name), "ollama/blobs/sha256-" + kDigest) << name;
  }
  EXPECT_EQ(names(), (Names{"hf.co/user/Repo-GGUF:Q8_0", "llama3:1b", "llama3:latest", "someone/tuned:v2"}));
  const auto found = find_model(folders_, "llama3:1b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 14U);
  EXPECT_EQ(found->format, "Q4_K_M");
  EXPECT_FALSE(found->adapted);
  EXPECT_TRUE(find_model(folders_, "someone/tuned:v2")->adapted);
}

TEST_F(FoundModels, AnUnknownNameIsToldWhereWasLookedAndWhatIsNear) {
  EXPECT_EQ(path("llama3"), "there is neither such a file nor a model of this name in " + folders_.in_words() +
                                ", and no other one either");
  blobs();
  for (const char* tag : {"1b", "3b", "8b", "70b", "latest"}) {
    manifest(std::string("registry.ollama.ai/library/llama3/") + tag, "sha256:" + kDigest);
  }
  manifest("registry.ollama.ai/library/quite-another/latest", "sha256:" + kDigest);
  const std::string why = path("llama3:2b");
  EXPECT_NE(why.find("; llama3:1b, llama3:3b, llama3:8b, llama3:70b, llama3:latest are near"), why.npos) << why;
  EXPECT_NE(why.find("`chasqui list`"), why.npos);
}

TEST_F(FoundModels, AManifestThatIsDamagedOrLeadsElsewhereIsNoModel) {
  blobs();
  write("secret", "GGUF");
  const std::string library = "registry.ollama.ai/library/";
  manifest(library + "out/latest", "sha256:../../secret");
  manifest(library + "gone/latest", "sha256:f" + kDigest.substr(1));
  write("ollama/manifests/" + library + "text/latest", R"({"layers":7})");
  write("ollama/manifests/" + library + "deep/latest", std::string(100'000, '['));
  write("ollama/manifests/" + library + "none/latest", "no JSON");
  write("ollama/manifests/" + library + "types/latest", R"({"config":7,"layers":[1,{"mediaType":1,"digest":[]}]})");
  EXPECT_EQ(names(), Names());
  for (const char* name :
       {"out", "gone", "text", "deep", "none", "types", "../out", "a/b/c/d/e", "", ":", "x:../latest", "a//b", "."}) {
    EXPECT_FALSE(find_model(folders_, name)) << name;
  }
}

TEST(ModelFiles, OfAListAreThoseOfAFolder) {
  const auto models = models_among({{"q8/m-Q8_0-00002-of-00012.gguf", 2},
                                    {"q8/m-Q8_0-00001-of-00012.gguf", 1},
                                    {"m-Q2_K.gguf", 7},
                                    {"mmproj-m.gguf", 9},
                                    {"config.json", 9}});
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0].path, "m-Q2_K.gguf");
  EXPECT_EQ(models[1].bytes, 3U);
  EXPECT_EQ(models[1].found, 2);
  const std::vector<fs::path> parts = parts_of(models[1]);
  ASSERT_EQ(parts.size(), 12U);
  EXPECT_EQ(parts.front(), models[1].path);
  EXPECT_EQ(parts.back(), "q8/m-Q8_0-00012-of-00012.gguf");
  EXPECT_EQ(parts_of(models[0]), (std::vector<fs::path>{"m-Q2_K.gguf"}));
  EXPECT_EQ(choose_model(models, "", ""), &models[1]);
  EXPECT_EQ(choose_model(models, "", "q2_k"), &models[0]);
  EXPECT_EQ(choose_model(models, "", "Q4_0"), nullptr);
}

TEST_F(FoundModels, ARepositoryHasTheSnapshotOfItsMainBranch) {
  const std::string repo = "models--user--repo";
  write("hub/" + repo + "/refs/main", "new\n");
  hub(repo, "old", "m-Q2_K.gguf", "old");
  hub(repo, "new", "m-Q8_0.gguf", "12345678");
  hub(repo, "new", "m-q4_k_m.gguf", "1234");
  hub(repo, "new", "m-UD-IQ4_XS.gguf", "4");
  hub(repo, "new", "mmproj-F16.gguf", "pictures");
  hub(repo, "new", "BF16/big-BF16-00001-of-00002.gguf", "12");
  hub(repo, "new", "BF16/big-BF16-00002-of-00002.gguf", "345");
  hub(repo, "new", "part-F16-00001-of-00003.gguf", "1");
  hub(repo, "new", "part-F16-00003-of-00003.gguf", "1");
  hub(repo, "new", "README.md", "text");
  const std::string below = "hub/" + repo + "/snapshots/new/";
  EXPECT_EQ(path("user/repo"), below + "m-q4_k_m.gguf") << "the usual one";
  EXPECT_EQ(path("hf.co/user/repo:q8_0"), below + "m-Q8_0.gguf");
  EXPECT_EQ(path("user/repo:BF16"), below + "BF16/big-BF16-00001-of-00002.gguf");
  EXPECT_EQ(path("user/repo:UD-IQ4_XS"), below + "m-UD-IQ4_XS.gguf");
  EXPECT_EQ(in_hub("user/repo", "m-Q8_0.gguf"), below + "m-Q8_0.gguf");
  EXPECT_EQ(in_hub("user/repo:Q4_XS"),
            (root_ / below).string().substr(0, (root_ / below).string().size() - 1) +
                " has no Q4_XS; it has BF16/big-BF16-00001-of-00002.gguf, "
                "m-Q8_0.gguf, m-UD-IQ4_XS.gguf, m-q4_k_m.gguf, "
                "part-F16-00001-of-00003.gguf; `chasqui pull user/repo:Q4_XS` downloads it if Hugging Face has it");
  EXPECT_NE(in_hub("user/repo:F16").find(" has 2 of its 3 parts"), std::string::npos) << in_hub("user/repo:F16");
  EXPECT_NE(in_hub("user/other").find("user/other is in no cache of Hugging Face: looked in "), std::string::npos);
  EXPECT_FALSE(find_in_hub(folders_.hub, "user/repo", "README.md"));
  EXPECT_FALSE(find_in_hub(folders_.hub, "user/repo", "../old/m-Q2_K.gguf"));
  for (const char* name : {"repo", "../x", "user/../repo", "/repo", "user/", "a/b/c"}) {
    EXPECT_NE(in_hub(name).find("is called USER/REPO or USER/REPO:QUANT; got "), std::string::npos) << name;
  }
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (const FoundModel& model : find_models(folders_)) all.emplace_back(model.name, model.bytes);
  EXPECT_EQ(all, (std::vector<std::pair<std::string, std::uint64_t>>{
                     {"user/repo:BF16", 5}, {"user/repo:IQ4_XS", 1}, {"user/repo:Q4_K_M", 4}, {"user/repo:Q8_0", 8}}));
}

TEST_F(FoundModels, OfARepositoryWithoutItsMainBranchTheNewestSnapshotCounts) {
  hub("models--user--repo", "a", "m-Q8_0.gguf", "old");
  hub("models--user--repo", "b", "m-Q8_0.gguf", "new");
  const fs::path snapshots = root_ / "hub/models--user--repo/snapshots";
  fs::last_write_time(snapshots / "a", fs::last_write_time(snapshots / "b") - std::chrono::hours(1));
  EXPECT_EQ(path("user/repo"), "hub/models--user--repo/snapshots/b/m-Q8_0.gguf");
  write("hub/models--user--repo/refs/main", "../../../plain\n");
  EXPECT_EQ(path("user/repo"), "hub/models--user--repo/snapshots/b/m-Q8_0.gguf") << "a commit leads nowhere else";
}

TEST_F(FoundModels, OlderLlamaCppHasTheRepositoryInTheNamesOfItsFiles) {
  write("plain/ggml-org_small-GGUF_small-Q4_0.gguf", "1234");
  write("plain/manifest=ggml-org=small-GGUF=Q4_0.json", "{}");
  write("plain/other.gguf", "12");
  EXPECT_EQ(names(), (Names{"ggml-org/small-GGUF:Q4_0", "other"}));
  EXPECT_EQ(path("ggml-org/small-GGUF"), "plain/ggml-org_small-GGUF_small-Q4_0.gguf");
  EXPECT_EQ(path("ggml-org/small-GGUF:Q4_0"), "plain/ggml-org_small-GGUF_small-Q4_0.gguf");
  EXPECT_EQ(in_hub("ggml-org/small-GGUF", "small-Q4_0.gguf"), "plain/ggml-org_small-GGUF_small-Q4_0.gguf");
  EXPECT_EQ(path("other"), "plain/other.gguf");
}

TEST_F(FoundModels, AFolderHasItsFilesAndThoseOfTheFoldersInIt) {
  write("folder/b.gguf", "12");
  write("folder/a-Q8_0-00001-of-00002.gguf", "1");
  write("folder/a-Q8_0-00002-of-00002.gguf", "2");
  write("folder/notes.txt", "x");
  write("folder/one/model.gguf", "1");
  write("folder/one/mmproj-model.gguf", "1");
  write("folder/two/x.gguf", "1");
  write("folder/two/y.gguf", "1");
  write("folder/two/three/deep.gguf", "1");
  const auto found = models_in_folder((root_ / "folder").string());
  ASSERT_TRUE(found);
  Names all;
  for (const FoundModel& model : *found) all.push_back(model.name);
  EXPECT_EQ(all, (Names{"a-Q8_0", "b", "one", "two/x", "two/y"}));
  EXPECT_EQ(found->front().bytes, 2U);
  EXPECT_EQ(found->front().format, "Q8_0");
  const auto nowhere = models_in_folder((root_ / "nowhere").string());
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message, (root_ / "nowhere").string() + ": No such file or directory");
}

TEST(ModelFolders, AreWhereTheVariablesOfTheirProgramsSay) {
  const ModelFolders home =
      model_folders([](const char* name) -> const char* { return std::strcmp(name, "HOME") == 0 ? "/h" : nullptr; });
  EXPECT_EQ(home.ollama, (Names{"/h/.ollama/models", "/usr/share/ollama/.ollama/models"}));
  EXPECT_EQ(home.hub.hub, Names{"/h/.cache/huggingface/hub"});
  EXPECT_EQ(home.hub.plain, Names{"/h/.cache/llama.cpp"});
  const ModelFolders said = model_folders([](const char* name) -> const char* {
    if (std::strcmp(name, "OLLAMA_MODELS") == 0) return "/o";
    if (std::strcmp(name, "LLAMA_CACHE") == 0) return "/l";
    return std::strcmp(name, "HF_HOME") == 0 ? "/f" : nullptr;
  });
  EXPECT_EQ(said.ollama, Names{"/o"});
  EXPECT_EQ(said.hub.hub, (Names{"/l", "/f/hub"}));
  EXPECT_EQ(said.hub.plain, Names{"/l"});
  EXPECT_EQ(said.in_words(), "/o, /l, /f/hub");
  EXPECT_TRUE(model_folders([](const char*) -> const char* { return nullptr; }).hub.hub.empty());
}

}  // namespace
}  // namespace chasqui::cli
