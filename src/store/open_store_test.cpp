#include "store/open_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

ObjectStoreConfig config_of(std::string url) {
  ObjectStoreConfig config;
  config.url = std::move(url);
  config.patience = seconds(1);
  config.aws_access_key_id = "key-id";
  config.aws_secret_access_key = "hidden";
  config.aws_endpoint_url = "http://127.0.0.1:1/path";
  return config;
}

TEST(OpenStore, OpensAFolderWithASealAroundIt) {
  const FakeFolder folder;
  std::ofstream(folder / "key") << std::string(64, 'a');
  std::filesystem::permissions(folder / "key", std::filesystem::perms::owner_read);
  ObjectStoreConfig config = config_of(folder.path() + "/store/");
  config.key_file = folder / "key";
  auto store = open_object_store(config);
  ASSERT_TRUE(store) << store.error().message;
  const StoredObject object{"a/b", fake_bytes("plain text")};
  EXPECT_FALSE((*store)->put({&object, 1}).front());
  const auto bytes = folder.bytes("store/a/b");
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find("plain"),
            std::string::npos);
  EXPECT_EQ(*(*store)->get({&object.name, 1}, 100).front(), object.bytes);
  EXPECT_EQ(*(*store)->list("a", 10), std::vector<std::string>{"a/b"});
  EXPECT_FALSE((*store)->remove({&object.name, 1}).front());
  EXPECT_EQ(*(*store)->list("a", 10), std::vector<std::string>{});
}

TEST(OpenStore, TakesUrlsAndAsksNothingYet) {
  for (const char* url : {"s3://bucket", "s3://bucket/", "s3://my.bucket/nodes/a_b", "dav://host/chasqui", "dav://host",
                          "davs://user:p%40ss@host:8443/a%20b/", "dav://[::1]:80/x"}) {
    const auto store = open_object_store(config_of(url));
    EXPECT_TRUE(store) << url << ": " << store.error().message;
  }
}

TEST(OpenStore, RefusesWhatIsNoStore) {
  for (const char* url : {"",
                          "folder",
                          "http://host",
                          "s3://",
                          "s3://ab",
                          "s3://bu?ket",
                          "s3://bucket/a//b",
                          "s3://bucket/../a",
                          "s3://bucket/a b",
                          "s3://bucket/./a",
                          "dav://",
                          "dav:///path",
                          "dav://:80/path",
                          "dav://secret@host/",
                          "dav://:secret@host/",
                          "dav://u:secret%4@host/",
                          "dav://host/a//b",
                          "dav://host/%2e%2e/a",
                          "dav://host/a?b",
                          "dav://host/a%2",
                          "dav://ho st/"}) {
    const auto store = open_object_store(config_of(url));
    ASSERT_FALSE(store) << url;
    EXPECT_EQ(store.error().code, ErrorCode::invalid_request) << url;
    EXPECT_EQ(store.error().field, "") << url;
    EXPECT_EQ(store.error().message.find("secret"), std::string::npos) << store.error().message;
  }
  EXPECT_NE(open_object_store(config_of("x")).error().message.find("s3://BUCKET[/PREFIX]"), std::string::npos);
}

TEST(OpenStore, RefusesVariablesThatMakeNoSense) {
  const auto refused = [](std::string ObjectStoreConfig::*variable, const std::string& value) {
    ObjectStoreConfig config = config_of("s3://bucket");
    config.*variable = value;
    const auto store = open_object_store(config);
    return store ? "" : store.error().message;
  };
  EXPECT_NE(refused(&ObjectStoreConfig::aws_access_key_id, "").find("AWS_ACCESS_KEY_ID"), std::string::npos);
  EXPECT_NE(refused(&ObjectStoreConfig::aws_secret_access_key, "").find("AWS_SECRET_ACCESS_KEY"), std::string::npos);
  EXPECT_NE(refused(&ObjectStoreConfig::aws_region, "a:b").find("AWS_REGION"), std::string::npos);
  EXPECT_NE(refused(&ObjectStoreConfig::aws_session_token, "a\nb").find("AWS_SESSION_TOKEN"), std::string::npos);
  for (const char* url : {"host", "ftp://host", "https://", "http://:80", "https://user:secret@host", "http://host/a?b",
                          "http://h/../a"}) {
    const std::string message = refused(&ObjectStoreConfig::aws_endpoint_url_s3, url);
    EXPECT_NE(message.find("AWS_ENDPOINT_URL_S3"), std::string::npos) << url << message;
    EXPECT_EQ(message.find("secret"), std::string::npos);
  }
  EXPECT_EQ(refused(&ObjectStoreConfig::aws_endpoint_url, ""), "");
  EXPECT_NE(refused(&ObjectStoreConfig::key_file, "/nonexistent/key").find("/nonexistent/key"), std::string::npos);
}

TEST(OpenStore, SaysWhichStoreDoesNotAnswerAndNoCredentials) {
  for (const char* url : {"s3://bucket/nodes", "dav://user:hidden@127.0.0.1:1/path"}) {
    const auto store = open_object_store(config_of(url));
    ASSERT_TRUE(store);
    const std::string name = "a";
    const Error error = (*store)->get({&name, 1}, 100).front().error();
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_NE(error.message.find(url[0] == 's' ? "s3://bucket/nodes" : "127.0.0.1:1/path"), std::string::npos)
        << error.message;
    EXPECT_EQ(error.message.find("hidden"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("key-id"), std::string::npos) << error.message;
  }
}

}  // namespace
}  // namespace chasqui::store
