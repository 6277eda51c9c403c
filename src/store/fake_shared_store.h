// An object store and a table of leases in memory, which several fake nodes share, with faults: calls that fail before
// or after they have happened, lists that are old, leases that are forgotten. Of one test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "store/object_store.h"
#include "store/session_leases.h"

namespace chasqui::store {

// What all nodes see.
struct FakeShared {
  struct Held {
    std::uint64_t lease = 0;
    std::string node{}, last{};
    std::uint64_t owner = 0;
    bool gone = false;
  };
  std::map<std::string, std::vector<std::byte>> objects;
  std::map<std::string, Held> leases;
  std::map<std::string, std::int64_t> old;
  std::int64_t now = 1000;                               // seconds
  std::map<std::string, std::vector<std::byte>> before;  // objects as they were for lists that are old

  std::mt19937_64 random{1};
  int store_faults = 0;  // of a hundred calls
  int lease_faults = 0;
  int old_lists = 0;
  std::function<void()> meanwhile = [] {};  // between the steps of a call

  bool chance(int of_hundred) { return static_cast<int>(random() % 100) < of_hundred; }
};

inline Error fake_fault() { return {ErrorCode::unavailable, "the network is cut", ""}; }

class FakeObjectStore final : public ObjectStore {
 public:
  explicit FakeObjectStore(FakeShared& shared) : shared_(shared) {}

  Outcomes put(std::span<const StoredObject> objects) override {
    Outcomes out;
    for (const StoredObject& object : objects) {
      const bool fails = shared_.chance(shared_.store_faults);
      if (!fails || shared_.chance(50)) shared_.objects.insert_or_assign(object.name, object.bytes);
      out.push_back(fails ? std::optional(fake_fault()) : std::nullopt);
    }
    shared_.meanwhile();
    return out;
  }
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override {
    std::vector<Result<std::vector<std::byte>>> out;
    for (const std::string& name : names) {
      const auto found = shared_.objects.find(name);
      if (shared_.chance(shared_.store_faults)) {
        out.emplace_back(fake_fault());
      } else if (found == shared_.objects.end()) {
        out.emplace_back(Error{ErrorCode::not_found, "there is no " + name, ""});
      } else if (found->second.size() > most) {
        out.emplace_back(Error{ErrorCode::unavailable, "it is too large", ""});
      } else {
        out.emplace_back(found->second);
      }
    }
    return out;
  }
  Outcomes remove(std::span<const std::string> names) override {
    Outcomes out;
    for (const std::string& name : names) {
      const bool fails = shared_.chance(shared_.store_faults);
      if (!fails) shared_.objects.erase(name);
      out.push_back(fails ? std::optional(fake_fault()) : std::nullopt);
    }
    return out;
  }
  Result<std::vector<std::string>> list(const std::string& folder, std::size_t) override {
    if (shared_.chance(shared_.store_faults)) return fake_fault();
    std::vector<std::string> out;
    const bool is_old = shared_.chance(shared_.old_lists);
    for (const auto& [name, bytes] : is_old ? shared_.before : shared_.objects) {
      if (name.starts_with(folder + '/') && name.find('/', folder.size() + 1) == std::string::npos) out.push_back(name);
    }
    if (!is_old) shared_.before = shared_.objects;
    shared_.meanwhile();
    return out;
  }

 private:
  FakeShared& shared_;
};

class FakeLeases final : public SessionLeases {
 public:
  FakeLeases(FakeShared& shared, std::string node) : shared_(shared), node_(std::move(node)) {}

  Result<SessionClaim> claim(const std::string& id, std::uint64_t owner) override {
    if (shared_.chance(shared_.lease_faults)) return fake_fault();
    const auto found = shared_.leases.find(id);
    if (found == shared_.leases.end()) return SessionClaim{.kind = SessionClaim::Kind::lost};
    FakeShared::Held& held = found->second;
    if (held.gone || held.owner != owner) return SessionClaim{};
    const bool here = held.node == node_;
    if (!here) ++held.lease;
    held.node = node_;
    return SessionClaim{here ? SessionClaim::Kind::here : SessionClaim::Kind::taken, held.lease, held.last};
  }
  Result<bool> has_ended(const std::string& id) override {
    if (shared_.chance(shared_.lease_faults)) return fake_fault();
    const auto found = shared_.leases.find(id);
    return found != shared_.leases.end() && found->second.gone;
  }
  std::vector<Result<Outcome>> commit(std::span<const LeaseStep> steps) override {
    const bool fails = shared_.chance(shared_.lease_faults);
    const bool nothing = fails && shared_.chance(50);
    std::vector<Result<Outcome>> out;
    for (const LeaseStep& step : steps) {
      const Result<Outcome> outcome = nothing ? Result<Outcome>(fake_fault()) : advance(step);
      out.push_back(fails ? Result<Outcome>(fake_fault()) : outcome);
    }
    return out;
  }
  Result<Outcome> end(const LeaseStep& step) override {
    if (shared_.chance(shared_.lease_faults)) return fake_fault();
    if (const auto found = shared_.leases.find(step.id); found != shared_.leases.end()) {
      if (found->second.gone) return Outcome::held;
      if (found->second.lease != step.lease || found->second.node != node_) return Outcome::passed;
    } else if (!step.fresh) {
      return Outcome::lost;
    }
    shared_.leases[step.id] = {step.lease, node_, step.last, step.owner, true};
    shared_.old[step.id] = shared_.now + (step.ttl > 0 ? step.ttl + 3600 : 0);
    return Outcome::held;
  }
  Result<void> forget(const std::string& id) override {
    if (shared_.chance(shared_.lease_faults)) return fake_fault();
    shared_.leases[id] = {.gone = true};
    shared_.old.erase(id);
    return {};
  }
  Result<bool> restore(const LeaseStep& step) override {
    if (shared_.chance(shared_.lease_faults)) return fake_fault();
    if (shared_.leases.contains(step.id)) return false;
    shared_.leases[step.id] = {step.lease, node_, step.last, step.owner, false};
    shared_.old[step.id] = shared_.now + (step.ttl > 0 ? step.ttl + 3600 : 0);
    return true;
  }
  Result<std::vector<std::string>> end_old(std::size_t most) override {
    std::vector<std::string> out;
    for (auto& [id, time] : shared_.old) {
      if (time > shared_.now || out.size() == most) continue;
      out.push_back(id);
      shared_.leases[id].gone = true;
      time = shared_.now + 60;
    }
    return out;
  }

 private:
  Outcome advance(const LeaseStep& step) {
    if (const auto found = shared_.leases.find(step.id); found != shared_.leases.end()) {
      if (found->second.gone) return Outcome::ended;
      if (found->second.lease != step.lease || found->second.node != node_) return Outcome::passed;
    } else if (!step.fresh) {
      return Outcome::lost;
    }
    shared_.leases[step.id] = {step.lease, node_, step.last, step.owner, false};
    shared_.old[step.id] = shared_.now + (step.ttl > 0 ? step.ttl + 3600 : 0);
    return Outcome::held;
  }

  FakeShared& shared_;
  const std::string node_;
};

}  // namespace chasqui::store
