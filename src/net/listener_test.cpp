#include "net/listener.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/fake_client.h"
#include "net/fake_server.h"

namespace chasqui::net {
namespace {

Result<void> check_listening(const ListenAddress& address) { return ListeningCheck().add(address); }

class ListenerTest : public testing::Test {
 protected:
  ListenerTest() : loop_(metrics_) {
    std::string pattern = (std::filesystem::temp_directory_path() / "chasqui-net-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ListenerTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  mode_t mode(const std::string& file) const {
    struct stat status {};
    EXPECT_EQ(::stat(file.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  std::filesystem::path folder_;
  NetMetrics metrics_;
  EventLoop loop_;
};

TEST_F(ListenerTest, BindsTcp) {
  const auto v4 = Listener::open(loop_, ListenAddress::tcp("localhost", 0));
  ASSERT_TRUE(v4);
  EXPECT_NE(v4->bound().port, 0);
  EXPECT_EQ(v4->bound().text, "localhost:" + std::to_string(v4->bound().port));
  const auto again = Listener::open(loop_, ListenAddress::tcp("127.0.0.1", v4->bound().port));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict);
  const auto name = Listener::open(loop_, ListenAddress::tcp("example.org", 0));
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, ErrorCode::invalid_request);
}

TEST_F(ListenerTest, ChecksWithoutStayingOpen) {
  std::optional<Listener> taken;
  {
    auto open = Listener::open(loop_, ListenAddress::tcp("127.0.0.1", 0));
    ASSERT_TRUE(open);
    taken.emplace(std::move(*open));
  }
  const ListenAddress tcp = ListenAddress::tcp("127.0.0.1", taken->bound().port);
  const auto refused = check_listening(tcp);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  taken.reset();
  EXPECT_TRUE(check_listening(tcp));
  EXPECT_TRUE(check_listening(tcp)) << "the first check has closed it";
  const ListenAddress local = ListenAddress::unix_socket(path("check.sock"));
  EXPECT_TRUE(check_listening(local));
  EXPECT_FALSE(std::filesystem::exists(local.path));
  EXPECT_FALSE(check_listening(ListenAddress::unix_socket(path("missing/check.sock"))));
}

TEST_F(ListenerTest, FindsAnAddressThatIsGivenTwice) {
  std::uint16_t port = 0;
  {
    auto open = Listener::open(loop_, ListenAddress::tcp("127.0.0.1", 0));
    ASSERT_TRUE(open);
    port = open->bound().port;
  }
  ListeningCheck check;
  EXPECT_TRUE(check.add(ListenAddress::tcp("127.0.0.1", port)));
  EXPECT_TRUE(check.add(ListenAddress::unix_socket(path("twice.sock"))));
  EXPECT_TRUE(check.add(ListenAddress::tcp("127.0.0.1", 0)));
  for (const ListenAddress& again :
       {ListenAddress::tcp("127.0.0.1", port), ListenAddress::tcp("localhost", port),
        ListenAddress::tcp("0.0.0.0", port), ListenAddress::unix_socket(path("twice.sock"))}) {
    const auto refused = check.add(again);
    ASSERT_FALSE(refused) << again.host << again.path;
    EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  }
}

TEST_F(ListenerTest, KnowsWhatOnlyThisMachineReaches) {
  EXPECT_TRUE(ListenAddress::tcp("localhost", 1).is_loopback());
  EXPECT_TRUE(ListenAddress::tcp("127.9.9.9", 1).is_loopback());
  EXPECT_TRUE(ListenAddress::tcp("::1", 1).is_loopback());
  EXPECT_TRUE(ListenAddress::unix_socket("/x").is_loopback());
  EXPECT_FALSE(ListenAddress::tcp("0.0.0.0", 1).is_loopback());
  EXPECT_FALSE(ListenAddress::tcp("::", 1).is_loopback());
  EXPECT_FALSE(ListenAddress::tcp("192.0.2.1", 1).is_loopback());
}

TEST_F(ListenerTest, TakesSocketsOfOthersAndLeavesThemOpen) {
  const auto tcp = open_listening(ListenAddress::tcp("127.0.0.1", 0));
  ASSERT_TRUE(tcp);
  const int kept = ::dup(*tcp);
  const auto address = ListenAddress::inherited(*tcp);
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->is_loopback());
  {
    const auto listener = Listener::open(loop_, *address);
    ASSERT_TRUE(listener);
    EXPECT_EQ(listener->bound().port, address->port);
  }
  const auto again = ListenAddress::inherited(kept);
  ASSERT_TRUE(again) << "it still listens";
  EXPECT_EQ(again->port, address->port);
  ::close(kept);

  const std::string file = path("given");
  const auto local = open_listening(ListenAddress::unix_socket(file));
  ASSERT_TRUE(local);
  const auto given = ListenAddress::inherited(*local);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->path, file);
  { ASSERT_TRUE(Listener::open(loop_, *given)); }
  EXPECT_TRUE(std::filesystem::exists(file)) << "it is not ours to remove";
}

TEST_F(ListenerTest, RefusesDescriptorsThatDoNotListen) {
  EXPECT_FALSE(ListenAddress::inherited(987));
  const int file = ::open("/dev/null", O_RDONLY);
  EXPECT_FALSE(ListenAddress::inherited(file));
  ::close(file);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_FALSE(ListenAddress::inherited(socket));
  ::close(socket);
}

TEST_F(ListenerTest, KeepsUnixSocketsToTheirOwner) {
  const std::string file = path("a");
  {
    const auto listener = Listener::open(loop_, ListenAddress::unix_socket(file));
    ASSERT_TRUE(listener);
    EXPECT_EQ(mode(file), 0600u);
    EXPECT_EQ(listener->bound().text, "unix:" + file);
    const auto open = Listener::open(loop_, ListenAddress::unix_socket(path("b"), 0666));
    ASSERT_TRUE(open);
    EXPECT_EQ(mode(path("b")), 0666u);
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(ListenerTest, TakesOverOnlyFromTheDead) {
  const std::string file = path("a");
  {
    const auto alive = Listener::open(loop_, ListenAddress::unix_socket(file));
    ASSERT_TRUE(alive);
    const auto second = Listener::open(loop_, ListenAddress::unix_socket(file));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::conflict);
    // A server that dies without a word leaves its name behind.
    std::filesystem::create_hard_link(file, path("dead"));
  }
  EXPECT_TRUE(Listener::open(loop_, ListenAddress::unix_socket(path("dead"))));
}

TEST_F(ListenerTest, LeavesFilesAlone) {
  std::ofstream(path("file")) << "precious";
  EXPECT_FALSE(Listener::open(loop_, ListenAddress::unix_socket(path("file"))));
  EXPECT_TRUE(std::filesystem::exists(path("file")));
  EXPECT_FALSE(Listener::open(loop_, ListenAddress::unix_socket(path("none/a"))));
  EXPECT_FALSE(Listener::open(loop_, ListenAddress::unix_socket(std::string(200, 'a'))));
}

TEST_F(ListenerTest, ServesHttpOnAUnixSocket) {
  FakeServer server;
  ASSERT_TRUE(server.server().listen(ListenAddress::unix_socket(path("http"))));
  std::thread thread([&] { server.loop().run(); });
  FakeClient client(path("http"));
  client.send("GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string expected = "\r\n\r\nunix loopback uid " + std::to_string(::getuid());
  const std::string response = client.read_response();
  EXPECT_TRUE(response.ends_with(expected)) << response;
  server.loop().stop();
  thread.join();
}

}  // namespace
}  // namespace chasqui::net
