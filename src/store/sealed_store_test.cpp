#include "store/sealed_store.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

StoreKey some_key(unsigned char salt = 1) {
  StoreKey key{};
  key.fill(salt);
  return key;
}
std::vector<std::byte> random_bytes(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

// Objects in memory, to look at and to damage.
class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(std::map<std::string, std::vector<std::byte>>& kept) : kept_(kept) {}

  Outcomes put(std::span<const StoredObject> objects) override {
    for (const StoredObject& object : objects) kept_[object.name] = object.bytes;
    return Outcomes(objects.size());
  }
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override {
    std::vector<Result<std::vector<std::byte>>> out;
    for (const std::string& name : names) {
      if (!kept_.contains(name)) {
        out.push_back(Error{ErrorCode::not_found, "none", ""});
      } else if (kept_[name].size() > most) {
        out.push_back(Error{ErrorCode::unavailable, "too large", ""});
      } else {
        out.push_back(kept_[name]);
      }
    }
    return out;
  }
  Outcomes remove(std::span<const std::string> names) override { return Outcomes(names.size()); }
  Result<std::vector<std::string>> list(const std::string&, std::size_t) override { return std::vector<std::string>(); }

 private:
  std::map<std::string, std::vector<std::byte>>& kept_;
};

class SealedStoreTest : public testing::TestWithParam<bool> {
 protected:
  std::optional<StoreKey> key() const { return GetParam() ? std::optional(some_key()) : std::nullopt; }
  ErrorCode code(const std::string& name, std::vector<std::byte> bytes) const {
    const auto out = unsealed(name, std::move(bytes), key());
    return out ? ErrorCode::internal : out.error().code;
  }
};

TEST_P(SealedStoreTest, GivesBackWhatWasWritten) {
  std::map<std::string, std::vector<std::byte>> kept;
  SealedStore store(std::make_unique<MemoryStore>(kept), key(), "memory");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kMegabyte - 1, kMegabyte, kMegabyte + 1, 3 * kMegabyte}) {
    const StoredObject object{"a/b", random_bytes(size)};
    ASSERT_FALSE(store.put({&object, 1}).front());
    EXPECT_NE(kept["a/b"], object.bytes);
    const auto got = store.get({&object.name, 1}, size);
    ASSERT_TRUE(got.front()) << got.front().error().message;
    EXPECT_EQ(*got.front(), object.bytes);
    if (size == 0) continue;
    EXPECT_EQ(store.get({&object.name, 1}, size - 1).front().error().code, ErrorCode::unavailable);
  }
  const std::string none = "none";
  EXPECT_EQ(store.get({&none, 1}, 10).front().error().code, ErrorCode::not_found);
}

TEST_P(SealedStoreTest, FindsEachBitThatIsFlipped) {
  const StoredObject object{"a/b", fake_bytes("what was said")};
  const auto whole = sealed(object, key());
  ASSERT_TRUE(unsealed("a/b", whole, key()));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_EQ(code("a/b", bytes), ErrorCode::invalid_request) << bit;
  }
}

TEST_P(SealedStoreTest, FindsWhatIsCutOrGrown) {
  const auto whole = sealed({"a/b", fake_bytes("what was said")}, key());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_EQ(code("a/b", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}),
              ErrorCode::invalid_request);
  }
  auto longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(code("a/b", longer), ErrorCode::invalid_request);
  auto twice = whole;
  twice.insert(twice.end(), whole.begin(), whole.end());
  EXPECT_EQ(code("a/b", twice), ErrorCode::invalid_request);
}

TEST_P(SealedStoreTest, FindsAnObjectOfAnotherName) {
  const auto whole = sealed({"a/b", fake_bytes("what was said")}, key());
  for (const char* name : {"a/c", "a/bb", "a", ""}) EXPECT_EQ(code(name, whole), ErrorCode::invalid_request) << name;
  const auto out = unsealed("a/c", whole, key());
  EXPECT_NE(out.error().message.find("a/c is not what was written"), std::string::npos) << out.error().message;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SealedStoreTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Encrypted" : "Checksum"; });

TEST(SealedStore, SaysThatTheKeyIsAnother) {
  std::map<std::string, std::vector<std::byte>> kept;
  const auto open = [&kept](std::optional<StoreKey> key) {
    return SealedStore(std::make_unique<MemoryStore>(kept), std::move(key), "memory");
  };
  const StoredObject object{"a", fake_bytes("text")};
  const auto error = [&](std::optional<StoreKey> writes, std::optional<StoreKey> reads) {
    open(std::move(writes)).put({&object, 1});
    return open(std::move(reads)).get({&object.name, 1}, 100).front().error();
  };
  for (const auto& [writes, reads, says] :
       {std::tuple(std::optional(some_key(1)), std::optional(some_key(2)), "with another key than this node has"),
        std::tuple(std::optional(some_key(1)), std::optional<StoreKey>(), "with a key, and this node has none"),
        std::tuple(std::optional<StoreKey>(), std::optional(some_key(1)), "without a key, and this node has one")}) {
    const Error found = error(writes, reads);
    EXPECT_EQ(found.code, ErrorCode::conflict);
    EXPECT_EQ(found.message, "the store memory: the object a was written " + std::string(says));
  }
}

TEST(SealedStore, EncryptsEachObjectInAnotherWay) {
  const StoredObject object{"a", fake_bytes(std::string(100, 'x'))};
  const auto one = sealed(object, some_key());
  const auto other = sealed(object, some_key());
  EXPECT_NE(one, other);
  const std::string_view text(reinterpret_cast<const char*>(one.data()), one.size());
  EXPECT_EQ(text.find("xxxx"), std::string_view::npos);
}

// Chunks that are each right, in another order, or of another object that is as long.
TEST(SealedStore, FindsChunksThatWereExchanged) {
  constexpr std::ptrdiff_t kStored = kMegabyte + 16;
  const StoredObject object{"a", random_bytes(3 * kMegabyte)};
  const auto whole = sealed(object, some_key());
  const auto other = sealed(object, some_key());
  const auto header = static_cast<std::ptrdiff_t>(whole.size()) - 3 * kStored;
  auto swapped = whole;
  std::swap_ranges(swapped.begin() + header, swapped.begin() + header + kStored, swapped.begin() + header + kStored);
  EXPECT_EQ(unsealed("a", swapped, some_key()).error().code, ErrorCode::invalid_request);
  auto mixed = whole;
  std::copy_n(other.begin() + header, kStored, mixed.begin() + header);
  EXPECT_EQ(unsealed("a", mixed, some_key()).error().code, ErrorCode::invalid_request);
  EXPECT_TRUE(unsealed("a", whole, some_key()));
}

TEST(SealedStore, ReadsAKeyThatOthersCannotRead) {
  const FakeFolder folder;
  const std::string path = folder / "key";
  const auto write = [&path](const std::string& text, std::filesystem::perms perms) {
    std::ofstream(path) << text;
    std::filesystem::permissions(path, perms);
    return read_store_key(path);
  };
  using enum std::filesystem::perms;
  const std::string digits = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
  for (const std::string& text : {digits, digits + '\n', digits + "\r\n"}) {
    const auto key = write(text, owner_read | owner_write | group_read);
    ASSERT_TRUE(key) << key.error().message;
    for (unsigned i = 0; i < key->size(); ++i) EXPECT_EQ((*key)[i], i);
  }
  const std::string secret = digits.substr(1);
  for (const std::string& text : {secret, secret + 'x', digits + '0', std::string(), digits + " ", ' ' + digits}) {
    const auto key = write(text, owner_read | owner_write);
    ASSERT_FALSE(key) << text;
    EXPECT_EQ(key.error().code, ErrorCode::invalid_request);
    EXPECT_EQ(key.error().message.find("0102"), std::string::npos);
  }
  EXPECT_NE(write(digits, owner_read | others_read).error().message.find("chmod"), std::string::npos);
  EXPECT_FALSE(read_store_key(folder / "none"));
  EXPECT_FALSE(read_store_key(folder.path()));
}

}  // namespace
}  // namespace chasqui::store
