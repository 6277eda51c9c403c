#include "publish/kv_events_config.h"

#include <gtest/gtest.h>

namespace chasqui::publish {
namespace {

TEST(KvEventsConfig, TellsWhereToListenAndWhatToConnectTo) {
  for (const char* endpoint : {"tcp://*:5557", "tcp://127.0.0.1:5557", "tcp://0.0.0.0:*", "tcp://[::1]:5557",
                               "tcp://*:*", "ipc:///run/chasqui/kv"}) {
    const auto server = listens(endpoint);
    ASSERT_TRUE(server) << endpoint;
    EXPECT_TRUE(*server) << endpoint;
  }
  for (const char* endpoint : {"tcp://router:5557", "tcp://epp.llm-d.svc.cluster.local:5557", "tcp://node7:1"}) {
    const auto server = listens(endpoint);
    ASSERT_TRUE(server) << endpoint;
    EXPECT_FALSE(*server) << endpoint;
  }
  for (const char* bad : {"", "*:5557", "tcp://", "tcp://*", "tcp://:5557", "tcp://*:", "tcp://*:http", "ipc://",
                          "tcp://router:*", "udp://*:1", "inproc://kv"}) {
    EXPECT_FALSE(listens(bad)) << bad;
  }
}

TEST(KvEventsConfig, RefusesWhatCannotBeMeant) {
  const auto field = [](const KvEventsConfig& config, std::size_t models = 1) {
    const auto checked = check_kv_events(config, models);
    return checked ? std::string() : checked.error().field;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({.endpoint = "tcp://*:1", .replay = "tcp://*:2", .topic = "kv"}), "");
  EXPECT_EQ(field({.endpoint = "5557"}), "--kv-events");
  EXPECT_EQ(field({.endpoint = "tcp://*:1", .replay = "5558"}), "--kv-events-replay");
  EXPECT_EQ(field({.replay = "tcp://*:2"}), "--kv-events-replay");
  EXPECT_EQ(field({.topic = "kv"}), "--kv-events-topic");
  EXPECT_EQ(field({.endpoint = "tcp://*:1"}, 2), "");
  EXPECT_EQ(field({.endpoint = "tcp://*:1", .topic = "kv@a@{model}"}, 2), "");
  EXPECT_EQ(field({.endpoint = "tcp://*:1", .topic = "kv@a@b"}, 2), "--kv-events-topic");
  EXPECT_EQ(field({.endpoint = "tcp://*:1", .replay = "tcp://*:2"}, 2), "--kv-events-replay");
}

}  // namespace
}  // namespace chasqui::publish
