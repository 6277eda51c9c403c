#include "api/core/key_list.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr const char* kHashOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

Result<std::vector<KeyLine>> parse(std::string_view text) { return parse_keys({}, "keys.txt", text); }

TEST(KeyList, TakesPlainKeysAsLlamaServerDoes) {
  const auto keys = parse_keys({"first"}, "keys.txt", "# the kitchen\nsalt\n\n  \npepper \r\nsalt");
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 3u);
  EXPECT_EQ((*keys)[0].hash, net::sha256({"first"}));
  EXPECT_EQ((*keys)[1].hash, net::sha256({"salt"}));
  EXPECT_EQ((*keys)[2].hash, net::sha256({"pepper"}));
  EXPECT_NE((*keys)[1].tenant, (*keys)[2].tenant);
  EXPECT_FALSE((*keys)[1].service_class);
}

TEST(KeyList, TakesHashesAndOptions) {
  const auto keys = parse(std::string("sha256:") + kHashOfAbc +
                          " name=alice class=background weight=2.5 in_flight=3\n"
                          "second-key\tname=alice\n"
                          "third class=interactive");
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 3u);
  const KeyLine& hashed = (*keys)[0];
  EXPECT_EQ(hashed.hash, net::sha256({"abc"}));
  EXPECT_EQ(hashed.tenant, "alice");
  EXPECT_EQ(hashed.service_class, ServiceClass::background);
  EXPECT_EQ(hashed.weight, 2.5);
  EXPECT_EQ(hashed.in_flight, 3u);
  const KeyLine& second = (*keys)[1];
  EXPECT_EQ(second.tenant, "alice");
  EXPECT_EQ(second.weight, 2.5) << "a tenant has one weight";
  EXPECT_EQ(second.in_flight, 3u);
  EXPECT_FALSE(second.service_class) << "a key has a class of its own";
  EXPECT_EQ((*keys)[2].service_class, ServiceClass::interactive);
}

TEST(KeyList, SaysWhatIsWrongWhere) {
  struct Case {
    std::string text;
    const char* line;
    const char* message;
  };
  const Case cases[] = {
      {"good\nsha256:abc", "line 2", "64 hexadecimal"},
      {std::string("sha256:") + std::string(64, 'g'), "line 1", "64 hexadecimal"},
      {"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 admin=yes", "line 1", "an empty text"},
      {"\n\nkey name=", "line 3", "name must be"},
      {"key name=a/b", "line 1", "name must be"},
      {"key class=urgent", "line 1", "class must be interactive, standard or background"},
      {"key weight=0", "line 1", "weight must be a number between"},
      {"key weight=heavy", "line 1", "weight must be"},
      {"key weight=nan", "line 1", "weight must be"},
      {"key in_flight=0", "line 1", "in_flight must be a whole number"},
      {"key in_flight=1.5", "line 1", "in_flight must be"},
      {"key in_flight=-1", "line 1", "in_flight must be"},
      {"key colour=red", "line 1", "name=, class=, weight=, in_flight= or admin="},
      {"two words", "line 1", "name=, class=, weight=, in_flight= or admin="},
      {"key admin=maybe", "line 1", "admin must be yes or no"},
      {"key name=a class=standard name=b", "line 1", "name must be on a line once only"},
      {"key weight=1 weight=1", "line 1", "weight must be on a line once only"},
      {"a admin=yes\na", "line 2", "on one line only"},
      {"a name=x weight=1\nb name=x weight=2", "line 2", "weight must be the same"},
      {"a name=x in_flight=1\nb name=x in_flight=2", "line 2", "in_flight must be the same"},
      {"a name=x\na name=y", "line 2", "one line only"},
  };
  for (const Case& c : cases) {
    const auto keys = parse(c.text);
    ASSERT_FALSE(keys) << c.text;
    const std::string& message = keys.error().message;
    EXPECT_TRUE(message.starts_with(std::string("keys.txt: ") + c.line + ": ")) << message;
    EXPECT_NE(message.find(c.message), std::string::npos) << message;
  }
}

TEST(KeyList, NeverShowsAKey) {
  const auto keys = parse("topsecret topsecret");
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().message.find("topsecret"), std::string::npos);
}

TEST(KeyList, WithoutKeysIsAMistakeWhenThereIsAFile) {
  EXPECT_FALSE(parse("# none yet\n\n"));
  EXPECT_FALSE(parse_keys({""}, "", ""));
  EXPECT_FALSE(parse_keys({" "}, "", ""));
  const auto none = parse_keys({}, "", "");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST(KeyList, KnowsWhetherALineHasAKeyItself) {
  EXPECT_TRUE(has_plain_key("key"));
  EXPECT_TRUE(has_plain_key("# mine\n\n \t\r\nsha256:00 name=a\n\tkey name=b\r\n"));
  for (const char* text : {"", "\n", "# key\n", "sha256:00", " sha256:00 name=a\n# key\n\n"}) {
    EXPECT_FALSE(has_plain_key(text)) << text;
  }
}

TEST(KeyList, IsBounded) {
  std::string text;
  for (int i = 0; i <= 2048; ++i) text += "key" + std::to_string(i) + "\n";
  const auto keys = parse(text);
  ASSERT_FALSE(keys);
  EXPECT_NE(keys.error().message.find("at most 2048"), std::string::npos);
}

TEST(KeyList, NamesTheFileThatCannotBeRead) {
  for (const char* name : {"/nowhere/keys", "/"}) {
    const auto keys = read_keys({}, name);
    ASSERT_FALSE(keys);
    EXPECT_NE(keys.error().message.find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace chasqui
