// Files that libllama would end the process for, or that would end it in the first step with them.
#include "model/adapter_file.h"

#include <filesystem>
#include <fstream>

#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

namespace chasqui {
namespace {

class AdapterFiles : public testing::Test {
 protected:
  AdapterFiles() : path_(testing::TempDir() + "chasqui-adapter-" + std::to_string(::getpid()) + ".gguf") {}
  ~AdapterFiles() override { std::filesystem::remove(path_); }

  struct Tensor {
    std::string name = "blk.0.attn_q.weight.lora_a";
    ggml_type type = GGML_TYPE_F32;
    std::int64_t third = 1;
  };

  void write(const Tensor& wanted, bool whole_number = false, bool has_type = true) const {
    const std::unique_ptr<ggml_context, void (*)(ggml_context*)> tensors(
        ggml_init({.mem_size = std::size_t{1} << 20, .mem_buffer = nullptr, .no_alloc = false}), ggml_free);
    const std::unique_ptr<gguf_context, void (*)(gguf_context*)> file(gguf_init_empty(), gguf_free);
    if (has_type) gguf_set_val_str(file.get(), "general.type", "adapter");
    gguf_set_val_str(file.get(), "general.architecture", "llama");
    gguf_set_val_str(file.get(), "adapter.type", "lora");
    if (whole_number) {
      gguf_set_val_u32(file.get(), "adapter.lora.alpha", 16);
    } else {
      gguf_set_val_f32(file.get(), "adapter.lora.alpha", 16);
    }
    ggml_tensor* const tensor = ggml_new_tensor_3d(tensors.get(), wanted.type, 32, 4, wanted.third);
    ggml_set_name(tensor, wanted.name.c_str());
    ggml_set_zero(tensor);
    gguf_add_tensor(file.get(), tensor);
    CHECK(gguf_write_to_file(file.get(), path_.c_str(), false));
  }

  std::string error() const { return error(path_); }
  static std::string error(const std::string& path) {
    const auto opened = open_adapter({.path = path, .name = "tone"});
    return opened ? "none" : opened.error().message;
  }

  const std::string path_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(AdapterFiles, AreKnownByTheirContents) {
  write({});
  const auto first = open_adapter({.path = path_, .name = "tone"});
  const auto again = open_adapter({.path = path_, .name = "other"});
  ASSERT_TRUE(first && again) << error();
  EXPECT_EQ(first->info.contents, again->info.contents);
  EXPECT_FALSE(has_changed(*first));
  write({.name = "blk.1.attn_q.weight.lora_a"});
  EXPECT_TRUE(has_changed(*first)) << "it was written into";
  std::filesystem::remove(path_);
  write({});
  EXPECT_TRUE(has_changed(*first)) << "the file that is open is the one before";
}

TEST_F(AdapterFiles, ThatLibllamaTakesForGrantedAreRefused) {
  write({}, true);
  EXPECT_TRUE(contains(error(), "adapter.lora.alpha is no float")) << error();
  write({}, false, false);
  EXPECT_TRUE(contains(error(), "it has no general.type")) << error();
  write({.type = GGML_TYPE_I32});
  EXPECT_TRUE(contains(error(), "has the type i32")) << error();
  write({.third = 2});
  EXPECT_TRUE(contains(error(), "has too many dimensions")) << error();
  write({.name = "blk.0.ffn_up_exps.weight.lora_a", .third = 2});
  EXPECT_EQ(error(), "none");
}

TEST_F(AdapterFiles, ThatAreNoFilesAreRefused) {
  EXPECT_TRUE(contains(error(testing::TempDir()), "it is a folder")) << error(testing::TempDir());
  const auto missing = open_adapter({.path = path_, .name = "tone"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  std::ofstream(path_) << "GGUL, and then something else";
  EXPECT_NE(error(), "none");
}

}  // namespace
}  // namespace chasqui
