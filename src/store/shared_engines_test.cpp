// Engines that share snapshots through a folder: real threads and files, simulated models.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "engine/engine.h"
#include "engine/fake_client.h"
#include "store/folder_store.h"
#include "store/sealed_store.h"
#include "store/shared_snapshots.h"

namespace chasqui::store {
namespace {

// Long enough for a file.
std::string shared_story(int number) {
  return chat("tell story number " + std::to_string(number) + std::string(90, '.'));
}

// One whose network can be cut.
class CutStore final : public ObjectStore {
 public:
  CutStore(std::unique_ptr<ObjectStore> below, const std::atomic<bool>& cut) : below_(std::move(below)), cut_(cut) {}

  Outcomes put(std::span<const StoredObject> objects) override {
    return cut_ ? Outcomes(objects.size(), no_answer()) : below_->put(objects);
  }
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override {
    if (!cut_) return below_->get(names, most);
    return std::vector<Result<std::vector<std::byte>>>(names.size(), no_answer());
  }
  Outcomes remove(std::span<const std::string> names) override {
    return cut_ ? Outcomes(names.size(), no_answer()) : below_->remove(names);
  }
  Result<std::vector<std::string>> list(const std::string& folder, std::size_t most) override {
    if (cut_) return no_answer();
    return below_->list(folder, most);
  }

 private:
  static Error no_answer() { return {ErrorCode::unavailable, "the network is cut", ""}; }

  const std::unique_ptr<ObjectStore> below_;
  const std::atomic<bool>& cut_;
};

class SharedEngines : public testing::Test {
 protected:
  struct Node {
    StepClock clock;  // outlives the engine
    std::unique_ptr<FakeClient> client;

    // Runs it and checks the answer. Returns how much of the prompt was not computed.
    TokenCount ask(const std::string& prompt, const Tenant& tenant = {}) {
      const RequestPtr request = client->submit(prompt, 20, [&](RequestDraft& draft) { draft.tenant = tenant; });
      client->read_to_end(request);
      EXPECT_EQ(client->of(request).text, answer_alone(*request).text);
      return client->of(request).last.usage.cached;
    }
    Engine& engine() { return client->engine; }
    std::int64_t metric(const std::string& name) {
      MetricsPage page;
      client->engine.add_metrics_to(page);
      std::istringstream lines(page.render());
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(name + ' ')) return std::stoll(line.substr(name.size() + 1));
      }
      ADD_FAILURE() << name << " is not on the page";
      return -1;
    }
    std::string shared_metrics() {
      MetricsPage page;
      client->engine.add_metrics_to(page);
      std::istringstream lines(page.render());
      std::string out;
      for (std::string line; std::getline(lines, line);) {
        const bool is_count = line.find("_seconds") == std::string::npos;
        if (is_count && line.starts_with("chasqui_shared_snapshot")) out += line + '\n';
      }
      return out;
    }
    // Fails, and does not hang, where it never comes.
    void wait_for(const std::string& name, const std::function<bool(std::int64_t)>& is_right) {
      const RealClock real;
      const TimePoint end = real.now() + std::chrono::minutes(1);
      while (!is_right(metric(name)) && real.now() < end) std::this_thread::yield();
      EXPECT_TRUE(is_right(metric(name))) << name << ": " << metric(name) << "\n" << shared_metrics();
    }
    void wait_for(const std::string& name, std::int64_t value) {
      wait_for(name, [value](std::int64_t now) { return now == value; });
    }
  };

  std::unique_ptr<Node> start(const std::string& name, std::uint64_t bytes = 1 << 20, std::size_t workers = 1,
                              Duration sleep_after = {}) {
    auto opened = SnapshotFolder::open(folder_.path() + '/' + name, fake_identity());
    EXPECT_TRUE(opened) << opened.error().message;
    auto node = std::make_unique<Node>();
    ClientConfig config;
    config.clock = &node->clock;  // a step takes a tenth of a second, and a read no time
    config.step_time = milliseconds(100);
    config.workers = workers;
    if (sleep_after > Duration::zero()) config.clock = nullptr;  // real time
    config.engine.sleep_after = sleep_after;
    config.engine.reuse.cache.bytes = 1 << 20;
    config.engine.reuse.disk = DiskLimits{.bytes = 1 << 20, .queue_bytes = 1 << 20};
    config.engine.disk = std::move(*opened);
    config.engine.shared_snapshots = {connect(), connect(), bytes, Duration(0)};
    node->client = std::make_unique<FakeClient>(config);
    return node;
  }
  std::shared_ptr<SharedSnapshotStore> connect() {
    auto store = FolderStore::open(folder_.path() + "/shared");
    EXPECT_TRUE(store) << store.error().message;
    auto sealed = std::make_unique<SealedStore>(std::make_unique<CutStore>(std::move(*store), cut_), std::nullopt, "");
    return std::make_shared<SharedSnapshots>(std::move(sealed), fake_identity(), "shared");
  }
  std::vector<std::filesystem::path> objects(const std::string& folder = "snapshots") const {
    std::vector<std::filesystem::path> out;
    const std::filesystem::path path = folder_ / ("shared/" + folder);
    if (!std::filesystem::exists(path)) return out;
    for (const auto& entry : std::filesystem::directory_iterator(path)) out.push_back(entry.path());
    return out;
  }

  FakeFolder folder_;
  std::atomic<bool> cut_{false};
};

constexpr const char* kShares = "chasqui_shared_snapshots";

TEST_F(SharedEngines, APrefixOfOneNodeIsReadByAnother) {
  const auto one = start("one");
  const auto other = start("other");
  EXPECT_EQ(one->ask(shared_story(1)), 0);
  other->wait_for(kShares, 1);
  EXPECT_GT(other->ask(shared_story(1)), 90);
  EXPECT_EQ(other->metric("chasqui_shared_snapshots_read_total{result=\"read\"}"), 1);
  EXPECT_LT(other->ask(shared_story(2)), 20) << "which only begins like the other";
}

TEST_F(SharedEngines, ItOutlivesTheNodeThatHasComputedIt) {
  {
    const auto one = start("one");
    one->ask(shared_story(1));
    one->wait_for(kShares, 1);
  }
  const auto other = start("other");
  other->wait_for(kShares, 1);
  EXPECT_GT(other->ask(shared_story(1)), 90);
}

TEST_F(SharedEngines, WhatBothHaveIsThereOnce) {
  const auto one = start("one");
  const auto other = start("other");
  one->ask(shared_story(1));
  other->wait_for(kShares, 1);
  other->ask(shared_story(1));
  // Written to its own folder, and not sent again.
  other->wait_for("chasqui_disk_snapshots", 1);
  other->ask(shared_story(2));
  one->wait_for(kShares, 2);
  one->wait_for("chasqui_shared_snapshots_sent_total", 1);
  other->wait_for("chasqui_shared_snapshots_sent_total", 1);
  EXPECT_EQ(objects().size(), 2u);
}

TEST_F(SharedEngines, AllWorkersOfANodeReadIt) {
  const auto one = start("one");
  const auto other = start("other", 1 << 20, 2);
  one->ask(shared_story(1));
  other->wait_for(kShares, 1);
  EXPECT_GT(other->ask(shared_story(1)), 90);
}

TEST_F(SharedEngines, ADamagedObjectCostsARecomputeAndIsGone) {
  const auto one = start("one");
  one->ask(shared_story(1));
  one->wait_for(kShares, 1);
  {
    std::fstream stream(objects().at(0), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-1, std::ios::end);
    const int last = stream.peek();
    stream.put(static_cast<char>(last ^ 1));
  }
  const auto other = start("other");
  other->wait_for(kShares, 1);
  EXPECT_EQ(other->ask(shared_story(1)), 0);
  EXPECT_EQ(other->metric("chasqui_shared_snapshots_read_total{result=\"failed\"}"), 1);
  // The other one has it now, and sends it in its place.
  other->wait_for("chasqui_shared_snapshots_sent_total", 1);
  const auto third = start("third");
  third->wait_for(kShares, 1);
  EXPECT_GT(third->ask(shared_story(1)), 90);
}

TEST_F(SharedEngines, AHeadWithoutItsSnapshotKeepsNoNodeFromSendingIt) {
  const auto one = start("one");
  one->ask(shared_story(1));
  one->wait_for(kShares, 1);
  std::filesystem::remove(objects().at(0));
  const auto other = start("other");
  other->wait_for(kShares, 1);
  EXPECT_EQ(other->ask(shared_story(1)), 0);
  other->wait_for("chasqui_shared_snapshots_sent_total", 1);
  EXPECT_EQ(objects().size(), 1u);
}

TEST_F(SharedEngines, ADamagedHeadGoes) {
  const auto one = start("one");
  one->ask(shared_story(1));
  one->wait_for(kShares, 1);
  {
    std::fstream stream(objects("snapshot_heads").at(0), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-1, std::ios::end);
    const int last = stream.peek();
    stream.put(static_cast<char>(last ^ 1));
  }
  const auto other = start("other");
  // It is no head, and goes.
  one->wait_for(kShares, 0);
  EXPECT_EQ(other->metric("chasqui_shared_snapshot_failures_total"), 0) << "one object is no store that fails";
}

TEST_F(SharedEngines, NewsOfOtherNodesKeepsNoModelAwake) {
  const auto one = start("one");
  const auto other = start("other", 1 << 20, 1, milliseconds(300));
  int story = 0;
  other->wait_for("chasqui_sleeping", [&](std::int64_t sleeps) {
    if (sleeps == 0) one->ask(shared_story(++story));
    return sleeps == 1;
  });
  other->wait_for(kShares, [](std::int64_t there) { return there > 0; });
  EXPECT_EQ(other->metric("chasqui_sleeping"), 1) << "nor wakes one";
}

TEST_F(SharedEngines, AStoreThatIsDownCostsNothingButARecompute) {
  const auto one = start("one");
  const auto other = start("other");
  one->ask(shared_story(1));
  other->wait_for(kShares, 1);
  cut_ = true;
  EXPECT_EQ(other->ask(shared_story(1)), 0);
  EXPECT_LT(one->ask(shared_story(2)), 20);
  one->wait_for("chasqui_shared_snapshot_failures_total", [](std::int64_t failures) { return failures > 0; });
  cut_ = false;
  EXPECT_LT(one->ask(shared_story(3)), 20);
  other->wait_for(kShares, [](std::int64_t there) { return there >= 2; });
  EXPECT_GT(one->ask(shared_story(2)), 90);  // what was not taken meanwhile goes when it is used
  other->wait_for(kShares, 3);
}

TEST_F(SharedEngines, AnEraseLeavesNothingOfTheTenant) {
  const auto one = start("one");
  const auto other = start("other");
  const Tenant mine{1, 1, 0x1111};
  const Tenant theirs{2, 1, 0x2222};
  one->ask(shared_story(1), mine);
  one->ask(shared_story(2), mine);
  one->ask(shared_story(3), theirs);
  other->wait_for(kShares, 3);
  const auto erased = other->engine().forget(mine);
  ASSERT_TRUE(erased) << erased.error().message;
  EXPECT_GE(*erased, 2u);
  EXPECT_EQ(objects().size(), 1u);
  EXPECT_EQ(objects("snapshot_heads").size(), 1u);
  one->wait_for(kShares, 1);
  EXPECT_EQ(other->ask(shared_story(1), mine), 0);
}

TEST_F(SharedEngines, AnEraseThatTheStoreDoesNotConfirmIsAnError) {
  const auto one = start("one");
  const Tenant mine{1, 1, 0x1111};
  one->ask(shared_story(1), mine);
  one->wait_for(kShares, 1);
  cut_ = true;
  EXPECT_FALSE(one->engine().forget(mine));
  cut_ = false;
  EXPECT_TRUE(one->engine().forget(mine));
  EXPECT_TRUE(objects().empty());
}

TEST_F(SharedEngines, TheOldestMakeRoom) {
  const auto one = start("one", 5000);  // about two stories
  for (int i = 0; i < 6; ++i) {
    one->ask(shared_story(i));
    one->wait_for("chasqui_shared_snapshots_sent_total", i + 1);
  }
  std::uintmax_t bytes = 0;
  for (const auto& object : objects()) bytes += std::filesystem::file_size(object);
  EXPECT_LE(bytes, 5000u + 1000u) << "and what the seal takes";
  EXPECT_GT(one->metric("chasqui_shared_snapshots_removed_total"), 2);
  const auto other = start("other", 5000);
  other->wait_for(kShares, [](std::int64_t now) { return now >= 1; });
  EXPECT_GT(other->ask(shared_story(5)), 90) << "the newest";
}

TEST_F(SharedEngines, WhatIsUsedGoesBackIntoTheStore) {
  const auto one = start("one", 5000);
  one->ask(shared_story(0));
  one->wait_for("chasqui_shared_snapshots_sent_total", 1);
  for (int i = 1; i < 4; ++i) {
    one->ask(shared_story(i));
    one->wait_for("chasqui_shared_snapshots_sent_total", i + 1);
  }
  EXPECT_GT(one->ask(shared_story(0)), 90);
  one->wait_for("chasqui_shared_snapshots_sent_total", 5);
}

}  // namespace
}  // namespace chasqui::store
