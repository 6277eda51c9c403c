// Backends that are loaded, with libraries of tests/backend.
#include "model/llama_backends.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "model/llama_runtime.h"

namespace chasqui {
namespace {
namespace fs = std::filesystem;

class LlamaBackends : public ::testing::Test {
 protected:
  LlamaBackends() : folder_(fs::temp_directory_path() / ("chasqui-backends-" + std::to_string(getpid()))) {
    EXPECT_TRUE(start_llama_runtime());
    fs::create_directory(folder_);
  }
  ~LlamaBackends() override { fs::remove_all(folder_); }

  void add(const std::string& kind) { fs::copy(fs::path(CHASQUI_TEST_BACKENDS) / name_of(kind), folder_); }
  static std::string name_of(const std::string& kind) { return "libggml-test-" + kind + ".so"; }
  static ggml_backend_reg_t found() { return ggml_backend_reg_by_name("Test"); }

  const fs::path folder_;
};

TEST_F(LlamaBackends, OneInTheFolderIsLoadedAndSeesTheFunctionsOfGgml) {
  add("good");
  const std::vector<Backend> all = load_backends(folder_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].library, (folder_ / name_of("good")).string());
  EXPECT_EQ(all[0].devices, "none");
  EXPECT_EQ(all[0].why, "");
  ASSERT_NE(found(), nullptr);
  ggml_backend_unload(found());
  EXPECT_EQ(found(), nullptr);
}

TEST_F(LlamaBackends, WhatIsNoBackendOfThisGgmlIsNotLoaded) {
  add("none");
  add("old");
  std::ofstream(folder_ / "libggml-broken.so") << "no library";
  std::ofstream(folder_ / "notes.so") << "not looked at";
  const std::vector<Backend> all = load_backends(folder_);
  EXPECT_EQ(found(), nullptr);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_NE(all[0].why.find("libggml-broken.so: "), std::string::npos) << all[0].why;
  EXPECT_EQ(all[1].why, "it is no backend of ggml: it has no ggml_backend_init");
  EXPECT_EQ(all[2].why, "it is of another ggml, or finds no device that it supports");
}

TEST_F(LlamaBackends, WhatOthersMayWriteIsNotLoaded) {
  add("good");
  fs::permissions(folder_, fs::perms::all);
  const std::vector<Backend> in_folder = load_backends(folder_);
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_EQ(in_folder.size(), 1u);
  EXPECT_EQ(in_folder[0].why, folder_.string() + " may be written by all users");
  const fs::path library = folder_ / name_of("good");
  fs::permissions(library, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(load_backends(folder_).at(0).why, library.string() + " may be written by all users");
  fs::permissions(library, fs::perms::others_write, fs::perm_options::remove);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(library.c_str(), 65534, 65534), 0);
    EXPECT_EQ(load_backends(folder_).at(0).why, library.string() + " belongs to another user");
  }
  EXPECT_EQ(found(), nullptr);
}

TEST_F(LlamaBackends, WithoutTheFolderThereAreNone) {
  EXPECT_TRUE(load_backends(folder_ / "none").empty());
  EXPECT_TRUE(load_backends({}).empty());
  std::ofstream(folder_ / "file") << "no folder";
  const std::vector<Backend> all = load_backends(folder_ / "file");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].why, "Not a directory");
}

// bin/chasqui has them in lib/chasqui/ggml-VERSION.
TEST_F(LlamaBackends, TheirFolderIsBesideThatOfTheBinary) {
  const fs::path folder = backend_folder();
  EXPECT_EQ(folder.parent_path(), fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "chasqui");
  EXPECT_EQ(folder.filename(), CHASQUI_TEST_BACKEND_FOLDER);
}

}  // namespace
}  // namespace chasqui
