// A disk of nothing but a map: carries out the orders of a DiskTier at once, and fails when it is told to. One thread.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sched/disk_tier.h"

namespace chasqui {

inline constexpr PrefixKey kDiskKey{3, 0};
inline constexpr std::uint64_t kDiskTenant = 333;
inline constexpr double kRowSeconds = 0.001;  // to compute a token

// Ten bytes for each token, so that any prefix of the tokens can be checked.
inline KvSnapshotPtr disk_snapshot_of(const std::vector<Token>& tokens) {
  const auto kv = std::make_shared<KvSnapshot>(tokens.size() * 10, static_cast<TokenCount>(tokens.size()));
  for (std::size_t i = 0; i < kv->bytes().size(); ++i) kv->bytes()[i] = static_cast<std::byte>(tokens[i / 10] + i % 10);
  return kv;
}

class FakeDisk {
 public:
  struct File {
    LastingKey key;
    std::vector<Token> tokens;
    KvSnapshotPtr kv;
  };

  // What came of the orders, in their order. Touches and removals have none.
  std::vector<DiskOutcome> carry_out(std::vector<DiskOrder>& orders) {
    std::vector<DiskOutcome> outcomes;
    for (DiskOrder& order : orders) {
      done.push_back(order.kind);
      DiskOutcome outcome{.kind = order.kind, .file = order.file, .took = took};
      switch (order.kind) {
        case DiskOrder::Kind::remove: files.erase(order.file); continue;
        case DiskOrder::Kind::touch: continue;
        case DiskOrder::Kind::read: read(outcome); break;
        case DiskOrder::Kind::write: write(order, outcome); break;
        case DiskOrder::Kind::sync: break;
        default: CHECK(false, "nothing else is ordered");
      }
      outcomes.push_back(std::move(outcome));
    }
    orders.clear();
    return outcomes;
  }

  std::map<std::uint64_t, File> files;
  std::vector<DiskOrder::Kind> done;
  bool reads_fail = false;
  bool writes_fail = false;
  Duration took{};  // by each read and write

 private:
  static Error broken() { return {ErrorCode::unavailable, "the disk is broken", ""}; }

  void read(DiskOutcome& outcome) {
    const auto found = files.find(outcome.file);
    CHECK(found != files.end(), "a file is read that is not there");
    if (reads_fail) {
      outcome.error = broken();
      return;
    }
    const auto [key, tokens, kv] = found->second;
    const auto copy = std::make_shared<KvSnapshot>(kv->bytes().size(), kv->tokens());
    std::copy(kv->bytes().begin(), kv->bytes().end(), copy->bytes().begin());
    outcome.key = key;
    outcome.tokens = tokens;
    outcome.kv = copy;
  }

  // Another copy: what is in memory must not depend on what is on disk.
  void write(DiskOrder& order, DiskOutcome& outcome) {
    outcome.kv = order.kv;
    if (writes_fail) {
      outcome.error = broken();
      return;
    }
    const auto copy = std::make_shared<KvSnapshot>(order.kv->bytes().size(), order.kv->tokens());
    std::copy(order.kv->bytes().begin(), order.kv->bytes().end(), copy->bytes().begin());
    CHECK(files.emplace(order.file, File{order.key, order.tokens, copy}).second, "a file is written twice");
  }
};

}  // namespace chasqui
