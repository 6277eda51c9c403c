// The files of the page, as a client gets them from a server.
#include "api/admin/page.h"

#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <chasqui_page.h>
#include <gtest/gtest.h>

#include "net/fake_client.h"
#include "net/fake_server.h"

namespace chasqui {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class PageTest : public testing::Test {
 protected:
  PageTest() {
    for (const char* const path : kPagePaths) {
      server_.router().add(net::HttpMethod::get, path,
                           [](net::HttpExchange& exchange) { return handle_page(exchange, "default-src 'none'"); });
    }
    thread_ = std::thread([this] { server_.loop().run(); });
  }
  ~PageTest() override {
    server_.loop().stop();
    thread_.join();
  }

  std::string get(const std::string& path, const std::string& headers = "") const {
    net::FakeClient client(server_.port());
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
    return client.read_response();
  }

  net::FakeServer server_;
  std::thread thread_;
};

std::string header(const std::string& response, const std::string& name) {
  const std::size_t at = response.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return response.substr(begin, response.find("\r\n", begin) - begin);
}

TEST_F(PageTest, EachFileComesPlainAndCompressedWithItsTypeAndPolicy) {
  const std::string script = "text/javascript; charset=utf-8";
  const std::map<std::string, std::pair<page::Bytes, std::string>> files = {
      {"/", {page::html(), "text/html; charset=utf-8"}},         {"/page.js", {page::script(), script}},
      {"/page.css", {page::style(), "text/css; charset=utf-8"}}, {"/favicon.svg", {page::icon(), "image/svg+xml"}},
      {"/favicon.ico", {page::icon(), "image/svg+xml"}},         {"/pdf.js", {page::pdf_reader(), script}},
  };
  ASSERT_EQ(files.size(), kPagePaths.size());
  for (const auto& [path, file] : files) {
    const auto& [bytes, type] = file;
    const std::string plain = get(path);
    EXPECT_EQ(header(plain, "Content-Type"), type) << path;
    EXPECT_EQ(header(plain, "Content-Encoding"), "") << path;
    EXPECT_EQ(header(plain, "Content-Security-Policy"), "default-src 'none'") << path;
    EXPECT_TRUE(plain.ends_with("\r\n\r\n" + text_of(bytes.plain()))) << path;
    const std::string packed = get(path, "Accept-Encoding: gzip\r\n");
    EXPECT_EQ(header(packed, "Content-Encoding"), "gzip") << path;
    EXPECT_TRUE(packed.ends_with("\r\n\r\n" + text_of(bytes.gzip()))) << path;
    EXPECT_LT(bytes.gzip().size(), bytes.plain().size()) << path;
  }
}

TEST_F(PageTest, AClientThatHasAFileIsToldThatItIsStillTheSame) {
  std::set<std::string> tags;
  for (const char* const path : kPagePaths) {
    const std::string tag = header(get(path), "ETag");
    ASSERT_FALSE(tag.empty()) << path;
    EXPECT_TRUE(get(path, "If-None-Match: " + tag + "\r\n").starts_with("HTTP/1.1 304 ")) << path;
    EXPECT_TRUE(get(path, "If-None-Match: \"another\"\r\n").starts_with("HTTP/1.1 200 ")) << path;
    tags.insert(tag);
  }
  EXPECT_EQ(tags.size(), kPagePaths.size() - 1) << "both icons are one file, and no others are";
}

// A worker of the page, as the reader of PDFs is one, may be what scripts may be: of the server itself.
TEST(PagePolicy, AllowsScriptsAndWorkersOfTheServerAlone) {
  const std::string policy = page_policy({"https://tools.example"});
  EXPECT_NE(policy.find("default-src 'none'; script-src 'self'; "), std::string::npos) << policy;
  EXPECT_NE(policy.find("connect-src 'self' https://tools.example;"), std::string::npos) << policy;
  for (const char* const word : {"unsafe", "wasm", "worker-src", "child-src", "blob:", "*"}) {
    EXPECT_EQ(policy.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace chasqui
