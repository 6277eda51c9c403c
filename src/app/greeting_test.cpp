#include "app/greeting.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chasqui {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUrl = "http://127.0.0.1:8080";
constexpr const char* kByHand = "\"Authorization: Bearer $API_KEY\"";

class RequestToTry : public testing::Test {
 protected:
  RequestToTry() {
    std::string name = testing::TempDir() + "chasqui-keys-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~RequestToTry() override { fs::remove_all(folder_); }

  std::string file(const std::string& text) const {
    const fs::path path = folder_ / "it's keys";
    std::ofstream(path) << text;
    return path;
  }
  static bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
  static std::string of(const ServeConfig& config) { return request_to_try(config, kUrl, false); }

  fs::path folder_;
};

TEST_F(RequestToTry, HasNoKeyWhereThereAreNone) {
  ServeConfig config;
  config.model_path = "m.gguf";
  EXPECT_EQ(of(config),
            "try: curl -N http://127.0.0.1:8080/v1/chat/completions -d "
            R"('{"stream":true,"messages":[{"role":"user","content":"Say hello in three languages."}]}')"
            "\n");
  EXPECT_TRUE(request_to_try(config, "https://[::1]:1", true).starts_with("try: curl -Nk https://[::1]:1/v1/"));
  config.model_path.clear();
  EXPECT_TRUE(has(of(config), "What is Chasqui?"));
}

TEST_F(RequestToTry, TakesAKeyOfTheEnvironmentFromThere) {
  ServeConfig config;
  config.keys_from_environment = true;
  config.api_keys = {"s3cret"};
  EXPECT_TRUE(has(of(config), "/v1/chat/completions -H \"Authorization: Bearer $LLAMA_API_KEY\" -d ")) << of(config);
  for (const std::vector<std::string>& several : {std::vector<std::string>{"s3cret", "other"}, {"s3cret name=a"}}) {
    config.api_keys = several;
    EXPECT_TRUE(has(of(config), "Bearer ${LLAMA_API_KEY%%[[:space:],]*}\" -d ")) << of(config);
  }
  for (const char* const unsent : {"sha256:00", " s3cret"}) {
    config.api_keys = {unsent};
    EXPECT_TRUE(has(of(config), kByHand)) << of(config);
  }
}

TEST_F(RequestToTry, ReadsAKeyOfTheFile) {
  ServeConfig config;
  config.api_key_file = file("# mine\n\nsha256:00\ns3cret name=a\n");
  const std::string out = of(config);
  EXPECT_TRUE(out.starts_with("try: curl ")) << out;
  EXPECT_TRUE(has(out, " -H \"Authorization: Bearer $(awk '")) << out;
  EXPECT_TRUE(has(out, "/it'\\''s keys')\" -d ")) << out;
  EXPECT_FALSE(has(out, "s3cret"));
  EXPECT_FALSE(has(out, "!")) << "an interactive shell would look for it in its history";
  config.api_keys = {"typed"};
  EXPECT_EQ(of(config), out) << "a command line is not to be found again, a file is";
}

TEST_F(RequestToTry, AsksForAKeyThatNoShellFinds) {
  ServeConfig config;
  config.api_keys = {"s3cret"};
  const std::string typed = of(config);
  EXPECT_TRUE(has(typed, "read -r API_KEY\ntry: curl ")) << typed;
  EXPECT_TRUE(has(typed, kByHand)) << typed;
  EXPECT_FALSE(has(typed, "s3cret"));
  config.api_keys.clear();
  config.api_key_file = file("sha256:00\n");
  EXPECT_TRUE(has(of(config), kByHand)) << "of a hash";
  config.api_key_file = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(config.api_key_file.c_str(), 0600), 0);
  EXPECT_TRUE(has(of(config), kByHand)) << "which is not waited for";
}

}  // namespace
}  // namespace chasqui
