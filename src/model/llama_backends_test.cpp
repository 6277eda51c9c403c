// Backends that are loaded, with libraries of tests/backend.
#include "model/llama_backends.h"

#include <filesystem>
#include <fstream>
#include <string>

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
  // What is logged meanwhile.
  std::string load() {
    ::testing::internal::CaptureStderr();
    load_backends(folder_);
    return ::testing::internal::GetCapturedStderr();
  }

  const fs::path folder_;
};

TEST_F(LlamaBackends, OneInTheFolderIsLoadedAndSeesTheFunctionsOfGgml) {
  add("good");
  const std::string log = load();
  ASSERT_NE(found(), nullptr) << log;
  EXPECT_NE(log.find("backend loaded library=" + (folder_ / name_of("good")).string() + " devices=none"),
            std::string::npos)
      << log;
  ggml_backend_unload(found());
  EXPECT_EQ(found(), nullptr);
}

TEST_F(LlamaBackends, WhatIsNoBackendOfThisGgmlIsAWarning) {
  add("none");
  add("old");
  std::ofstream(folder_ / "libggml-broken.so") << "no library";
  std::ofstream(folder_ / "notes.so") << "not looked at";
  const std::string log = load();
  EXPECT_EQ(found(), nullptr);
  for (const std::string& name : {name_of("none"), name_of("old"), std::string("libggml-broken.so")}) {
    EXPECT_NE(log.find("backend not loaded library=" + (folder_ / name).string() + " why="), std::string::npos)
        << name << "\n"
        << log;
  }
  EXPECT_EQ(log.find("notes.so"), std::string::npos) << log;
}

TEST_F(LlamaBackends, WithoutTheFolderThereAreNone) {
  load_backends(folder_ / "none");
  load_backends({});
  EXPECT_EQ(found(), nullptr);
}

// bin/chasqui has them in lib/chasqui/ggml-VERSION.
TEST_F(LlamaBackends, TheirFolderIsBesideThatOfTheBinary) {
  const fs::path folder = backend_folder();
  EXPECT_EQ(folder.parent_path(), fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "chasqui");
  EXPECT_EQ(folder.filename(), CHASQUI_TEST_BACKEND_FOLDER);
}

}  // namespace
}  // namespace chasqui
