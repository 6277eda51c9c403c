// The disk tier in a whole engine: real threads and files, a simulated model.
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/fake_client.h"

namespace chasqui {
namespace {

// Long enough for a file.
std::string disk_story(int number) {
  return chat("tell story number " + std::to_string(number) + std::string(90, '.'));
}

class EngineDisk : public testing::Test {
 protected:
  EngineDisk() {
    std::string name = testing::TempDir() + "chasqui.XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~EngineDisk() override { std::filesystem::remove_all(folder_); }

  // An engine that starts with what is in the folder.
  std::unique_ptr<FakeClient> start(std::size_t cache_bytes = 1 << 20, int model = 1) {
    ModelIdentity identity;
    identity.weights.fill(static_cast<std::byte>(model));
    auto opened = SnapshotFolder::open(folder_ / "snapshots", identity);
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    ClientConfig config;
    config.clock = &clock_;  // a step takes a millisecond, and a read no time
    config.engine.reuse.cache.bytes = cache_bytes;
    config.engine.reuse.disk = DiskLimits{.bytes = 1 << 20, .queue_bytes = 1 << 20};
    config.engine.disk = std::move(*opened);
    return std::make_unique<FakeClient>(config);
  }
  // Runs it and checks the answer. Returns how much of the prompt was not computed.
  static TokenCount ask(FakeClient& client, const std::string& prompt, const Tenant& tenant = {},
                        const AdapterSetPtr& adapters = nullptr) {
    const RequestPtr request = client.submit(prompt, 20, [&](RequestDraft& draft) {
      draft.tenant = tenant;
      draft.adapters = adapters;
    });
    client.read_to_end(request);
    const AloneAnswer alone = answer_alone(*request);
    EXPECT_EQ(client.of(request).text, alone.text);
    EXPECT_EQ(client.of(request).last.reason, alone.reason);
    return client.of(request).last.usage.cached;
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "snapshots")) {
      if (entry.path().extension() == ".kv") files.push_back(entry.path());
    }
    return files;
  }
  // Fails, and does not hang, where it never comes.
  static void wait_for(const Gauge& gauge, std::int64_t value) {
    const RealClock clock;
    const TimePoint end = clock.now() + std::chrono::minutes(1);
    while (gauge.value() != value && clock.now() < end) std::this_thread::yield();
    ASSERT_EQ(gauge.value(), value);
  }

  StepClock clock_;
  std::filesystem::path folder_;
};

TEST_F(EngineDisk, APromptSurvivesARestart) {
  EXPECT_EQ(ask(*start(), disk_story(1)), 0);
  EXPECT_EQ(files().size(), 1u);
  const auto again = start();
  EXPECT_GT(ask(*again, disk_story(1)), 90);
  EXPECT_EQ(again->engine.metrics().disk_read_seconds.count(), 1u);
  EXPECT_LT(ask(*again, disk_story(2)), 20) << "which only begins like the other";
  EXPECT_EQ(again->engine.metrics().disk_read_seconds.count(), 1u);
}

TEST_F(EngineDisk, WhatIsIdleIsWrittenWithoutBeingTold) {
  const auto client = start();
  ask(*client, disk_story(1));
  wait_for(client->engine.metrics().snapshot_files, 1);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(EngineDisk, WhatDoesNotFitIntoMemoryComesBackFromDisk) {
  const auto client = start(6000);  // about two stories
  for (int i = 0; i < 8; ++i) {
    ask(*client, disk_story(i));
    // Who needs a slot does not wait for a disk that is still busy with what was there before.
    wait_for(client->engine.metrics().snapshot_files, i + 1);
  }
  for (int i = 0; i < 8; ++i) EXPECT_GT(ask(*client, disk_story(i)), 90) << i;
  EXPECT_GE(client->engine.metrics().disk_read_seconds.count(), 6u);
  EXPECT_LE(client->engine.metrics().snapshot_bytes.value(), 6000);
}

TEST_F(EngineDisk, ManyWhoWantTheSameFileAllGetIt) {
  ask(*start(), disk_story(1));
  const auto client = start();
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 12; ++i) requests.push_back(client->submit(disk_story(1), 5));
  client->read_to_end();
  for (const RequestPtr& request : requests) {
    EXPECT_EQ(client->of(request).text, answer_alone(*request).text);
    EXPECT_GT(client->of(request).last.usage.cached, 90);
  }
  EXPECT_EQ(client->engine.metrics().disk_read_seconds.count(), 1u);
}

TEST_F(EngineDisk, ADamagedFileCostsARecomputeAndIsGone) {
  ask(*start(), disk_story(1));
  const std::filesystem::path file = files().at(0);
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-1, std::ios::end);
    const int last = stream.peek();
    stream.put(static_cast<char>(last ^ 1));
  }
  const auto client = start();
  EXPECT_EQ(ask(*client, disk_story(1)), 0);
  std::uint64_t refused = 0;
  for (const Counter& counter : client->engine.metrics().disk_refused) refused += counter.value();
  EXPECT_EQ(refused, 1u);
  EXPECT_GT(ask(*client, disk_story(1)), 90) << "from memory";
}

TEST_F(EngineDisk, AnotherModelsFilesAreNotUsed) {
  ask(*start(), disk_story(1));
  const auto client = start(1 << 20, 2);
  EXPECT_EQ(client->engine.metrics().disk_read_seconds.count(), 0u);
  EXPECT_EQ(ask(*client, disk_story(1)), 0);
  EXPECT_EQ(client->engine.metrics().foreign_files.value(), 1);
}

TEST_F(EngineDisk, TenantsDoNotReadEachOthersFiles) {
  const Tenant alice{.id = 1, .lasting = 111};
  const Tenant bob{.id = 1, .lasting = 222};  // who has the id now that was hers
  const Tenant alice_again{.id = 2, .lasting = 111};
  const Tenant nameless{.id = 3};
  ask(*start(), disk_story(1), alice);
  EXPECT_EQ(ask(*start(), disk_story(1), bob), 0);
  EXPECT_EQ(ask(*start(), disk_story(1)), 0);
  EXPECT_EQ(ask(*start(), disk_story(1), nameless), 0);
  EXPECT_EQ(ask(*start(), disk_story(1), nameless), 0) << "nothing of it was kept";
  EXPECT_GT(ask(*start(), disk_story(1), alice_again), 90);
}

TEST_F(EngineDisk, AdaptersDoNotReadEachOthersFiles) {
  constexpr float kScales[] = {1};
  constexpr std::uint64_t kContents[] = {5};
  const AdapterSetPtr adapters = make_adapter_set(kScales, kContents);
  ask(*start(), disk_story(1));
  EXPECT_EQ(ask(*start(), disk_story(1), {}, adapters), 0);
  EXPECT_GT(ask(*start(), disk_story(1), {}, adapters), 90);
  EXPECT_GT(ask(*start(), disk_story(1)), 90);
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(EngineDisk, WhatATenantWantsForgottenIsForgottenOnDisk) {
  const Tenant alice{.id = 1, .lasting = 111};
  const Tenant bob{.id = 2, .lasting = 222};
  {
    const auto before = start();
    ask(*before, disk_story(1), alice);
    ask(*before, disk_story(1), bob);
  }
  ASSERT_EQ(files().size(), 2u);
  {
    const auto after = start();
    EXPECT_EQ(*after->engine.forget(alice), 1u);
    EXPECT_EQ(files().size(), 1u) << "it is gone when that is said, not later";
  }
  EXPECT_EQ(ask(*start(), disk_story(1), alice), 0);
  EXPECT_GT(ask(*start(), disk_story(1), bob), 90);
}

TEST_F(EngineDisk, ADiskThatBreaksCostsNothingButItsFiles) {
  const auto client = start(6000);
  std::filesystem::remove_all(folder_ / "snapshots");
  for (int i = 0; i < 6; ++i) ask(*client, disk_story(i));
  EXPECT_GT(ask(*client, disk_story(5)), 90) << "memory is as good as before";
  wait_for(client->engine.metrics().disk_queue, 0);
  EXPECT_GT(client->engine.metrics().disk_write_failures.value(), 0u);
  EXPECT_EQ(client->engine.metrics().snapshot_files.value(), 0);
}

TEST_F(EngineDisk, AClientThatLeavesWhileItsFileIsReadCostsNothing) {
  ask(*start(), disk_story(1));
  const auto client = start();
  for (int i = 0; i < 20; ++i) {
    const RequestPtr request = client->submit(disk_story(1), 5);
    client->engine.cancel(request->id);
  }
  client->read_to_end();
  EXPECT_GT(ask(*client, disk_story(1)), 90);
}

}  // namespace
}  // namespace chasqui
