// A broker in memory, for tests: what it takes is the Broker's, which several queues share as nodes do, and which loses
// connections and data when it is told to. Deliveries come back when the test says that they were silent for too long.
// One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jobs/line_queue.h"

namespace chasqui {

struct FakeBroker {
  struct Entry {
    std::uint64_t id = 0;
    std::string home;
    LineKey key{};
    std::string message;
    std::string taker;  // empty: it waits
    std::uint64_t deliveries = 0;
  };
  struct Kept {
    std::uint64_t id = 0;
    std::string message;
  };

  bool down = false;
  bool refuses = false;       // what it would have to keep; all else goes
  std::uint64_t fail_at = 0;  // the call that fails after it was carried out; 0: none
  std::uint64_t calls = 0;
  std::uint64_t last_id = 0;
  std::vector<Entry> lines;
  std::map<std::string, std::vector<Kept>> results;  // by home

  // What was taken is silent for too long.
  void redeliver() {
    for (Entry& line : lines) line.taker.clear();
  }
  void forget_all() {
    lines.clear();
    results.clear();
  }
};

class FakeLineQueue final : public LineQueue {
 public:
  FakeLineQueue(FakeBroker& broker, std::string consumer) : broker_(broker), consumer_(std::move(consumer)) {}

  std::string shown() const override { return "fake://"; }
  void be(std::string home) override { home_ = std::move(home); }
  Result<void> open() override {
    cursor_ = 0;
    return reach();
  }

  Result<std::vector<Posted>> publish(std::span<const LinePost> lines) override {
    if (broker_.down || broker_.refuses) return gone();
    std::vector<Posted> out;
    for (const LinePost& line : lines) {
      const bool there = std::ranges::any_of(
          broker_.lines, [&](const FakeBroker::Entry& each) { return each.home == home_ && each.key == line.key; });
      if (!there) broker_.lines.push_back({++broker_.last_id, home_, line.key, line.message, {}, 0});
      out.push_back(there ? Posted::already : Posted::yes);
    }
    if (auto reached = reach(); !reached) return reached.error();
    return out;
  }
  Result<void> withdraw(std::span<const LineKey> lines) override {
    if (broker_.down) return gone();
    std::erase_if(broker_.lines, [&](const FakeBroker::Entry& each) {
      return each.home == home_ && std::ranges::find(lines, each.key) != lines.end();
    });
    return reach();
  }
  Result<std::vector<LineKey>> outstanding() override {
    if (auto reached = reach(); !reached) return reached.error();
    std::vector<LineKey> out;
    for (const FakeBroker::Entry& each : broker_.lines) {
      if (each.home == home_) out.push_back(each.key);
    }
    return out;
  }
  Result<std::vector<TakenMessage>> results(std::size_t most, std::size_t bytes) override {
    if (auto reached = reach(); !reached) return reached.error();
    std::vector<TakenMessage> out;
    for (const FakeBroker::Kept& each : broker_.results[home_]) {
      if (each.id <= cursor_) continue;
      if (out.size() == most || each.message.size() > bytes) break;
      bytes -= each.message.size();
      cursor_ = each.id;
      out.push_back({std::to_string(each.id), 1, each.message});
    }
    return out;
  }
  Result<void> acknowledge(std::span<const LinePost> results) override {
    if (broker_.down) return gone();
    for (const LinePost& one : results) {
      std::erase_if(broker_.results[home_],
                    [&](const FakeBroker::Kept& each) { return std::to_string(each.id) == one.receipt; });
    }
    return reach();
  }

  Result<std::vector<TakenMessage>> take(std::size_t most) override {
    if (broker_.down) return gone();
    std::vector<TakenMessage> out;
    for (FakeBroker::Entry& each : broker_.lines) {
      if (!each.taker.empty() || out.size() == most) continue;
      each.taker = consumer_;
      out.push_back({std::to_string(each.id), ++each.deliveries, each.message});
    }
    if (auto reached = reach(); !reached) return reached.error();
    return out;
  }
  Result<std::vector<std::string>> keep(std::span<const LinePost> lines) override {
    if (auto reached = reach(); !reached) return reached.error();
    std::vector<std::string> lost;
    for (const LinePost& line : lines) {
      const FakeBroker::Entry* const found = find(line.receipt);
      if (found == nullptr || found->taker != consumer_) lost.push_back(line.receipt);
    }
    return lost;
  }
  Result<Posted> answer(const LinePost& line) override {
    if (broker_.down || broker_.refuses) return gone();
    if (line.message.size() > most_) return Posted::too_large;
    broker_.results[line.home].push_back({++broker_.last_id, line.message});
    erase(line.receipt);
    if (auto reached = reach(); !reached) return reached.error();
    return Posted::yes;
  }
  Result<void> give_back(const LinePost& line) override {
    if (broker_.down || broker_.refuses) return gone();
    if (find(line.receipt) != nullptr) {
      broker_.lines.push_back({++broker_.last_id, line.home, line.key, line.message, {}, 0});
    }
    erase(line.receipt);
    return reach();
  }
  Result<void> drop(const LinePost& line) override {
    if (broker_.down) return gone();
    erase(line.receipt);
    return reach();
  }

  void set_most(std::size_t bytes) { most_ = bytes; }

 private:
  static Error gone() { return {ErrorCode::unavailable, "the fake broker is down, or refuses", ""}; }
  Result<void> reach() const {
    if (broker_.down || ++broker_.calls == broker_.fail_at) return gone();
    return {};
  }
  FakeBroker::Entry* find(const std::string& receipt) {
    const auto found = std::ranges::find_if(
        broker_.lines, [&](const FakeBroker::Entry& each) { return std::to_string(each.id) == receipt; });
    return found == broker_.lines.end() ? nullptr : &*found;
  }
  void erase(const std::string& receipt) {
    std::erase_if(broker_.lines, [&](const FakeBroker::Entry& each) { return std::to_string(each.id) == receipt; });
  }

  FakeBroker& broker_;
  const std::string consumer_;
  std::string home_;
  std::uint64_t cursor_ = 0;
  std::size_t most_ = SIZE_MAX;
};

}  // namespace chasqui
