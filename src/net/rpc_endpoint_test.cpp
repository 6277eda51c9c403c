// Endpoints as they are written, and what a greeting says of who answers it: servers of the test's own, each a socket
// that is held in another way.
#include "net/rpc_endpoint.h"

#include <array>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace chasqui::net {
namespace {

constexpr Duration kPatience = milliseconds(200);

TEST(RpcEndpoint, IsAHostAndAPort) {
  const auto list = read_rpc_endpoints("127.0.0.1:50052,10.1.2.3:1,127.0.0.1:50052,localhost:65535");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 3u) << "one came twice";
  EXPECT_EQ((*list)[0].name, "127.0.0.1:50052");
  EXPECT_EQ((*list)[0].address, 0x7f000001u);
  EXPECT_EQ((*list)[0].port, 50052);
  EXPECT_EQ((*list)[1].address, 0x0a010203u);
  EXPECT_EQ((*list)[2].address, 0x7f000001u);
}

TEST(RpcEndpoint, OtherTextsAreQuoted) {
  for (const char* bad : {"", "127.0.0.1", ":50052", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:5x",
                          "127.0.0.1: 5", "[::1]:50052", "127.0.0.1:1,", ",127.0.0.1:1", "127.0.0.1:-1"}) {
    const auto list = read_rpc_endpoints(bad);
    ASSERT_FALSE(list) << bad;
    EXPECT_EQ(list.error().code, ErrorCode::invalid_request) << bad;
    EXPECT_EQ(list.error().field, "--rpc") << bad;
  }
}

TEST(RpcEndpoint, PrivateAddressesAreThoseThatOthersCannotReach) {
  for (const char* here : {"127.0.0.1", "127.255.0.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.9.9",
                           "169.254.1.1"}) {
    EXPECT_TRUE(is_private_address(*read_ipv4(here))) << here;
  }
  for (const char* out : {"0.0.0.0", "8.8.8.8", "11.0.0.1", "172.15.0.1", "172.32.0.1", "192.169.0.1", "255.0.0.1"}) {
    EXPECT_FALSE(is_private_address(*read_ipv4(out))) << out;
  }
  EXPECT_FALSE(read_ipv4("localhost"));
  EXPECT_FALSE(read_ipv4("127.0.0.1:5"));
}

// Listens, and answers the first that greets it with these bytes, then hangs up; without any it says nothing.
class Answerer {
 public:
  explicit Answerer(std::vector<unsigned char> answer, bool accepts = true) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint = {"there", INADDR_LOOPBACK, ntohs(address.sin_port)};
    if (accepts) thread_ = std::thread([this, bytes = std::move(answer)] { answer_one(bytes); });
  }
  ~Answerer() {
    if (thread_.joinable()) thread_.join();
    ::close(fd_);
  }

  RpcEndpoint endpoint;

 private:
  void answer_one(const std::vector<unsigned char>& bytes) const {
    const int client = ::accept(fd_, nullptr, nullptr);
    std::array<unsigned char, 33> hello{};
    EXPECT_EQ(::recv(client, hello.data(), hello.size(), MSG_WAITALL), static_cast<ssize_t>(hello.size()));
    EXPECT_EQ(hello[0], 14);
    EXPECT_EQ(hello[1], 24);
    ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(client);
  }

  const int fd_;
  std::thread thread_;
};

std::vector<unsigned char> greeting(unsigned char major, unsigned char minor, unsigned char patch) {
  std::vector<unsigned char> out(36);
  out[0] = 28;
  out[8] = major;
  out[9] = minor;
  out[10] = patch;
  return out;
}

TEST(RpcGreeting, SaysTheVersion) {
  const Answerer server(greeting(7, 1, 2));
  const auto version = greet_rpc_server(server.endpoint, kPatience);
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(version->major, 7);
  EXPECT_EQ(version->minor, 1);
  EXPECT_EQ(version->patch, 2);
  EXPECT_FALSE(has_connection(server.endpoint)) << "it hangs up";
}

TEST(RpcGreeting, TellsApartWhatIsWrong) {
  const auto fails = [](const RpcEndpoint& endpoint, ErrorCode code, const std::string& words) {
    const auto version = greet_rpc_server(endpoint, kPatience);
    ASSERT_FALSE(version);
    EXPECT_EQ(version.error().code, code) << version.error().message;
    EXPECT_NE(version.error().message.find(words), std::string::npos) << version.error().message;
    EXPECT_NE(version.error().message.find(endpoint.name), std::string::npos) << version.error().message;
  };
  {
    const Answerer closes({});
    fails(closes.endpoint, ErrorCode::unavailable, "hangs up");
  }
  {
    const std::string text = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    const Answerer speaks_http({text.begin(), text.end()});
    fails(speaks_http.endpoint, ErrorCode::invalid_request, "is no RPC server");
  }
  RpcEndpoint gone;
  {
    const Answerer silent({}, false);
    fails(silent.endpoint, ErrorCode::unavailable, "does not answer within 200 ms");
    gone = silent.endpoint;
  }
  fails(gone, ErrorCode::unavailable, "cannot be reached");
}

TEST(RpcConnections, OfThisProcessAreSeenAndSeenToDie) {
  const Answerer server({}, false);
  EXPECT_FALSE(has_connection(server.endpoint));
  EXPECT_FALSE(watch_connections(server.endpoint));
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(server.endpoint.port);
  ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(has_connection(server.endpoint));
  EXPECT_TRUE(watch_connections(server.endpoint));
  EXPECT_FALSE(has_dead_connection(server.endpoint));
  int keeps = 0;
  socklen_t size = sizeof keeps;
  ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keeps, &size), 0);
  EXPECT_EQ(keeps, 1);
  ASSERT_EQ(::shutdown(fd, SHUT_WR), 0);  // no connection that stands any more
  EXPECT_FALSE(has_connection(server.endpoint));
  EXPECT_TRUE(has_dead_connection(server.endpoint));
  ::close(fd);
  EXPECT_FALSE(has_dead_connection(server.endpoint));
}

}  // namespace
}  // namespace chasqui::net
