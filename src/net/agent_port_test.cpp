#include "net/agent_port.h"

#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "net/fake_client.h"

namespace chasqui::net {
namespace {

class AgentPortTest : public testing::Test {
 protected:
  AgentPortTest() : loop_(metrics_), agent_(loop_, [this] { return std::string_view(line_); }) {
    port_ = agent_.listen(ListenAddress::tcp("127.0.0.1", 0))->port;
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~AgentPortTest() override {
    loop_.stop();
    thread_.join();
  }

  NetMetrics metrics_;
  EventLoop loop_;
  std::string line_ = "up ready\n";
  AgentPort agent_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(AgentPortTest, SaysItsLineAndCloses) {
  FakeClient client(port_);
  EXPECT_EQ(client.read_to_end(), "up ready\n");
}

TEST_F(AgentPortTest, SaysItToThoseThatSaySomethingFirst) {
  for (int i = 0; i < 20; ++i) {
    FakeClient client(port_);
    client.send("agent-send of the operator\n");
    EXPECT_EQ(client.read_to_end(), "up ready\n");
  }
}

TEST_F(AgentPortTest, SaysItWhileManyDoNotClose) {
  std::vector<FakeClient> idle;
  for (std::size_t i = 0; i < 2 * kSizeLimit<"agent_connections">; ++i) {
    idle.emplace_back(port_);
    EXPECT_EQ(idle.back().read_until("\n"), "up ready\n");
  }
  EXPECT_EQ(FakeClient(port_).read_to_end(), "up ready\n");
  std::size_t open = 0;
  std::promise<void> counted;
  loop_.post([&] {
    open = agent_.connections();
    counted.set_value();
  });
  counted.get_future().wait();
  EXPECT_LE(open, kSizeLimit<"agent_connections">);
}

}  // namespace
}  // namespace chasqui::net
