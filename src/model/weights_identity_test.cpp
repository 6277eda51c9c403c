#include "model/weights_identity.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "model/test_weights.h"

namespace chasqui {
namespace {

// A copy of the demo model to change.
class WeightsIdentity : public testing::Test {
 protected:
  WeightsIdentity() : path_(testing::TempDir() + "chasqui-identity-" + std::to_string(::getpid()) + ".gguf") {
    std::filesystem::copy_file(test_model_path(), path_, std::filesystem::copy_options::overwrite_existing);
  }
  ~WeightsIdentity() override { std::filesystem::remove(path_); }

  Checksum identity() const {
    const auto identity = identify_weights(path_);
    EXPECT_TRUE(identity.has_value());
    return identity ? *identity : Checksum{};
  }
  void flip(std::uint64_t at) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.peek();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
    EXPECT_TRUE(file.good());
  }

  const std::string path_;
};

TEST_F(WeightsIdentity, IsThatOfTheContentWhereverItLies) {
  EXPECT_EQ(identity(), *identify_weights(test_model_path()));
}

TEST_F(WeightsIdentity, ChangesWithMetadataAndSize) {
  const Checksum before = identity();
  std::ifstream file(path_, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  const std::size_t text = content.find("<|im_start|>");  // in the vocabulary or the template
  ASSERT_NE(text, std::string::npos);
  flip(text + 3);
  EXPECT_NE(identity(), before);
  flip(text + 3);
  EXPECT_EQ(identity(), before);
  std::ofstream(path_, std::ios::binary | std::ios::app) << 'x';
  EXPECT_NE(identity(), before);
}

TEST_F(WeightsIdentity, ChangesWithEveryTensor) {
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> gguf(
      gguf_init_from_file(path_.c_str(), {.no_alloc = true, .ctx = nullptr}), gguf_free);
  std::set<Checksum> seen = {identity()};
  const std::int64_t tensors = gguf_get_n_tensors(gguf.get());
  ASSERT_GT(tensors, 10);
  for (std::int64_t i = 0; i < tensors; ++i) {
    const std::uint64_t at = gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), i);
    const std::uint64_t last = at + gguf_get_tensor_size(gguf.get(), i) - 1;
    flip(at);
    EXPECT_TRUE(seen.insert(identity()).second) << gguf_get_tensor_name(gguf.get(), i);
    flip(at);
    flip(last);
    EXPECT_TRUE(seen.insert(identity()).second) << gguf_get_tensor_name(gguf.get(), i);
    flip(last);
  }
}

TEST_F(WeightsIdentity, IsNotThatOfAFileThatHasGone) {
  std::filesystem::remove(path_);
  const auto identity = identify_weights(path_);
  ASSERT_FALSE(identity.has_value());
  EXPECT_NE(identity.error().message.find(path_), std::string::npos);
}

TEST(ContextIdentity, ChangesWithWhatChangesTheBytesOfASnapshot) {
  const ModelConfig config;
  ModelShape shape;
  shape.slots = 4;
  const Checksum before = identify_context(config, shape);
  ModelConfig keys = config;
  keys.kv_keys = KvType::q8_0;
  ModelConfig values = config;
  values.kv_values = KvType::q8_0;
  ModelConfig flash = config;
  flash.flash_attention = FlashAttention::on;
  ModelShape streams = shape;
  streams.slots = 8;
  ModelShape pool = shape;
  pool.unified = true;
  ModelShape far = shape;
  far.long_rope = true;
  const std::set<Checksum> all = {before,
                                  identify_context(keys, shape),
                                  identify_context(values, shape),
                                  identify_context(flash, shape),
                                  identify_context(config, streams),
                                  identify_context(config, pool),
                                  identify_context(config, far)};
  EXPECT_EQ(all.size(), 7u);
  std::set<Checksum> formats;
  for (const KvType type : kv_types()) {
    keys.kv_keys = type;
    formats.insert(identify_context(keys, shape));
  }
  EXPECT_EQ(formats.size(), kv_types().size());
  ModelShape longer = shape;
  longer.cells = 4096;
  EXPECT_EQ(identify_context(config, longer), before) << "a larger context can use what a smaller one has made";
}

}  // namespace
}  // namespace chasqui
