// The same for every kind of store: those that CHASQUI_TEST_STORES names, with blanks between their URLs, which
// tests/fleet/stores.test.mjs starts, and a folder. Credentials as the server reads them.
#include <cstdlib>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "base/random_id.h"
#include "cache/fake_folder.h"
#include "store/open_store.h"

namespace chasqui::store {
namespace {

constexpr std::size_t kMost = std::size_t{64} << 20;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> real_stores() {
  std::istringstream urls(variable("CHASQUI_TEST_STORES"));
  std::vector<std::string> out{"folder"};
  for (std::string url; urls >> url;) out.push_back(url);
  return out;
}

std::vector<std::byte> noise(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

class RealStores : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    config_.url = GetParam() == "folder" ? folder_.path() + "/store" : GetParam();
    config_.aws_access_key_id = variable("AWS_ACCESS_KEY_ID");
    config_.aws_secret_access_key = variable("AWS_SECRET_ACCESS_KEY");
    config_.aws_region = variable("AWS_REGION");
    config_.aws_endpoint_url = variable("AWS_ENDPOINT_URL");
    store_ = open(config_);
  }
  static std::unique_ptr<ObjectStore> open(const ObjectStoreConfig& config) {
    auto opened = open_object_store(config);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  void put(const std::vector<StoredObject>& objects) {
    for (const auto& outcome : store_->put(objects)) ASSERT_FALSE(outcome) << outcome->message;
  }
  std::vector<std::string> names_in(const std::string& folder) {
    const auto names = store_->list(folder, 10'000);
    EXPECT_TRUE(names) << names.error().message;
    return names ? *names : std::vector<std::string>();
  }

  FakeFolder folder_;
  ObjectStoreConfig config_;
  std::unique_ptr<ObjectStore> store_;
  const std::string own_ = random_id("test-");  // a folder of each run's own
};

TEST_P(RealStores, KeepObjectsOfAllSizes) {
  std::vector<StoredObject> objects;
  for (const std::size_t size : {0u, 1u, 1000u, 100'000u, 1u << 20, (1u << 20) + 1, 20u << 20}) {
    objects.push_back({own_ + "/sizes/" + std::to_string(size), noise(size)});
  }
  put(objects);
  const auto other = open(config_);  // another node
  std::vector<std::string> names;
  for (const StoredObject& object : objects) names.push_back(object.name);
  const auto got = other->get(names, kMost);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    ASSERT_TRUE(got[i]) << got[i].error().message;
    EXPECT_TRUE(*got[i] == objects[i].bytes) << names[i];
  }
  put({objects[3]});  // the same again
  const auto too_large = store_->get({&names.back(), 1}, 1000);
  EXPECT_EQ(too_large.front().error().code, ErrorCode::unavailable) << too_large.front().error().message;
  for (const auto& outcome : store_->remove(names)) EXPECT_FALSE(outcome) << outcome->message;
  for (const auto& gone : store_->get(names, kMost)) {
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, ErrorCode::not_found) << gone.error().message;
  }
  for (const auto& outcome : store_->remove(names)) EXPECT_FALSE(outcome) << outcome->message;
  EXPECT_EQ(names_in(own_ + "/sizes"), std::vector<std::string>{});
}

TEST_P(RealStores, ListWhatIsDirectlyInAFolder) {
  EXPECT_EQ(names_in(own_ + "/none"), std::vector<std::string>{});
  std::vector<StoredObject> objects;
  std::vector<std::string> expected;
  for (int i = 0; i < 30; ++i) {
    const std::string name = own_ + "/many/" + std::to_string(100 + i);
    expected.push_back(name);
    objects.push_back({name, noise(10)});
    if (i % 3 == 0) objects.back().name += "/1";
  }
  put(objects);
  EXPECT_EQ(names_in(own_ + "/many"), expected);
  EXPECT_EQ(names_in(own_ + "/many/100"), std::vector<std::string>{own_ + "/many/100/1"});
  const auto limited = store_->list(own_ + "/many", 29);
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, ErrorCode::unavailable);
  std::vector<std::string> names;
  for (const StoredObject& object : objects) names.push_back(object.name);
  for (const auto& outcome : store_->remove(names)) EXPECT_FALSE(outcome) << outcome->message;
}

// More than one page of S3.
TEST_P(RealStores, ListMoreThanAThousand) {
  std::vector<StoredObject> objects;
  std::vector<std::string> expected;
  for (int i = 0; i < 1100; ++i) {
    expected.push_back(own_ + "/pages/" + std::to_string(10'000 + i));
    objects.push_back({expected.back(), noise(1)});
  }
  put(objects);
  EXPECT_EQ(names_in(own_ + "/pages"), expected);
  for (const auto& outcome : store_->remove(expected)) EXPECT_FALSE(outcome) << outcome->message;
}

TEST_P(RealStores, RefuseAnotherPassword) {
  if (GetParam() == "folder") GTEST_SKIP() << "has none";
  ObjectStoreConfig config = config_;
  config.aws_secret_access_key = "another";
  if (const std::size_t at = config.url.find('@'); at != std::string::npos) config.url.insert(at, "x");
  const auto store = open(config);
  const StoredObject object{own_ + "/refused", noise(10)};
  const auto outcome = store->put({&object, 1}).front();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, ErrorCode::forbidden) << outcome->message;
  EXPECT_EQ(store->list(own_, 10).error().code, ErrorCode::forbidden);
  EXPECT_EQ(store_->get({&object.name, 1}, kMost).front().error().code, ErrorCode::not_found);
}

// CHASQUI_TEST_STORES behind something that fails: CHASQUI_TEST_BROKEN_STORE, of which messages are to say
// CHASQUI_TEST_BROKEN_SAYS.
TEST_P(RealStores, SayThatTheyAreBroken) {
  ObjectStoreConfig config = config_;
  config.url = variable("CHASQUI_TEST_BROKEN_STORE");
  config.aws_endpoint_url = variable("CHASQUI_TEST_BROKEN_ENDPOINT");
  config.patience = milliseconds(500);
  if (config.url.empty()) GTEST_SKIP() << "no CHASQUI_TEST_BROKEN_STORE";
  const std::string name = own_ + "/object";
  put({{name, noise(100'000)}});
  const auto got = open(config)->get({&name, 1}, kMost);
  ASSERT_FALSE(got.front());
  const ErrorCode code = got.front().error().code;
  EXPECT_TRUE(code == ErrorCode::unavailable || code == ErrorCode::invalid_request) << got.front().error().message;
  EXPECT_NE(got.front().error().message.find(variable("CHASQUI_TEST_BROKEN_SAYS")), std::string::npos)
      << got.front().error().message;
  EXPECT_TRUE(store_->get({&name, 1}, kMost).front());
  EXPECT_FALSE(store_->remove({&name, 1}).front());
}

INSTANTIATE_TEST_SUITE_P(Each, RealStores, testing::ValuesIn(real_stores()), [](const auto& store) {
  return std::to_string(store.index) + '_' + store.param.substr(0, store.param.find(':'));
});

}  // namespace
}  // namespace chasqui::store
