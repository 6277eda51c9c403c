// The C++ client against a server of the test's own, which has said everything before the client reads.
#include "chasqui_client.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

namespace json = boost::json;

// Its queue keeps the connection until it is accepted, so one thread is enough.
class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    std::string made = (std::filesystem::temp_directory_path() / "chasqui-client-XXXXXX").string();
    EXPECT_NE(::mkdtemp(made.data()), nullptr);
    folder_ = made;
    const std::string path = (folder_ / "frames.sock").string();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    client_.emplace(path);
    server_ = ::accept(listener_, nullptr, nullptr);
    EXPECT_GE(server_, 0);
  }
  ~ClientTest() override {
    ::close(server_);
    ::close(listener_);
    std::filesystem::remove_all(folder_);
  }

  void say(const json::object& event) const {
    const std::string body = json::serialize(event);
    std::string frame;
    for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(body.size() >> shift & 0xff);
    frame += body;
    ASSERT_EQ(::send(server_, frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
  }
  void say_token(std::int64_t id, const char* text) const { say({{"id", id}, {"event", "token"}, {"text", text}}); }
  void say_end(std::int64_t id) const { say({{"id", id}, {"event", "eos"}, {"reason", "stop"}}); }

  // The texts of a request, and a point where it ended.
  std::string read(std::int64_t id) {
    std::string out;
    client_->events_of(id, [&out](const json::object& event) {
      out += event.at("event") == "token" ? event.at("text").as_string().c_str() : ".";
      return true;
    });
    return out;
  }

  std::optional<Client> client_;
  int server_ = -1;

 private:
  std::filesystem::path folder_;
  int listener_ = -1;
};

TEST_F(ClientTest, KeepsAllOfARequestThatEndsWhileAnotherIsRead) {
  const std::int64_t first = client_->start({{"prompt", "a"}});
  const std::int64_t second = client_->start({{"prompt", "b"}});
  say_token(first, "one ");
  say_token(second, "three ");
  say_token(second, "four");
  say_end(second);
  say_token(first, "two");
  say_end(first);
  EXPECT_EQ(read(first), "one two.");
  EXPECT_EQ(read(second), "three four.");
}

TEST_F(ClientTest, GivesTheEventsOfAllInTheirOrder) {
  const std::int64_t first = client_->start({{"prompt", "a"}});
  const std::int64_t second = client_->start({{"prompt", "b"}});
  say_token(second, "x");
  say_end(second);
  say_token(first, "y");
  say_end(first);
  EXPECT_EQ(client_->next().at("id"), second);
  EXPECT_EQ(client_->next().at("event"), "eos");
  EXPECT_EQ(read(first), "y.");
}

TEST_F(ClientTest, AnErrorOfAnotherRequestIsThrownWhereThatIsRead) {
  const std::int64_t first = client_->start({{"prompt", "a"}});
  const std::int64_t second = client_->start({{"prompt", "b"}});
  say({{"id", second}, {"event", "error"}, {"code", "overloaded"}, {"message", "later"}});
  say_end(first);
  EXPECT_EQ(read(first), ".");
  EXPECT_THROW(read(second), ClientError);
}

}  // namespace
}  // namespace chasqui
