#include "app/listeners.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(ReadAddress, IsAnAddressWithAPortOrAPath) {
  const auto v4 = read_address("--admin-listen", "127.0.0.1:9090", 0600);
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 9090);
  EXPECT_TRUE(v4->is_loopback());
  const auto v6 = read_address("--admin-listen", "[::1]:0", 0600);
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(read_address("--admin-listen", "localhost:1", 0600)->host, "localhost");
  for (const char* path : {"/run/chasqui/admin", "./admin", "admin.sock"}) {
    const auto local = read_address("--admin-listen", path, 0660);
    ASSERT_TRUE(local) << path;
    EXPECT_EQ(local->path, path);
    EXPECT_EQ(local->mode, 0660u);
  }
  EXPECT_EQ(read_address("--admin-listen", "unix:/run/admin", 0660)->path, "/run/admin") << "as it is printed";
}

TEST(ReadAddress, SaysWhatItWants) {
  for (const char* bad : {"", "9090", ":9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:80",
                          "[127.0.0.1]:80", "[::1]", "node.example:80", "unix:", "127.0.0.1:80 ", "127.0.0.1:-1"}) {
    const auto address = read_address("--agent-check", bad, 0600);
    ASSERT_FALSE(address) << bad;
    EXPECT_EQ(address.error().field, "--agent-check");
    EXPECT_NE(address.error().message.find("127.0.0.1:9090"), std::string::npos);
  }
}

TEST(HostAddresses, AreAlsoPathsAsTheyArePrinted) {
  ServeConfig config;
  config.host = "127.0.0.1, a.sock, unix:/run/b";
  const auto addresses = host_addresses(config);
  ASSERT_EQ(addresses.size(), 3u);
  EXPECT_EQ(addresses[0].host, "127.0.0.1");
  EXPECT_EQ(addresses[1].path, "a.sock");
  EXPECT_EQ(addresses[2].path, "/run/b");
}

TEST(Listeners, ForOperatorsAreOfThisMachineUnlessSaid) {
  ServeConfig config;
  EXPECT_TRUE(listeners_of(config)->admin.empty()) << "by default there is none";
  EXPECT_TRUE(listeners_of(config)->agent.empty());
  config.admin_listen = {"127.0.0.1:0", "/tmp/admin.sock"};
  config.agent_check = "0.0.0.0:0";
  const auto local = listeners_of(config);
  ASSERT_TRUE(local);
  EXPECT_EQ(local->admin.size(), 2u);
  EXPECT_EQ(local->agent.size(), 1u) << "it says a word and takes none";
  config.admin_listen = {"0.0.0.0:0"};
  const auto refused = listeners_of(config);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--admin-public"), std::string::npos);
  config.admin_public = true;
  EXPECT_TRUE(listeners_of(config));
}

}  // namespace
}  // namespace chasqui
