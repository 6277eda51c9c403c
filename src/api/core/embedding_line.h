// The requests whose inputs wait to be embedded or ranked, and which inputs are computed together next: of tenants in
// turns, of a tenant's requests in turns, with the same adapters. So short requests share a batch, and none waits for
// all of a long one. Owned by the EmbeddingService; pure, loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/cpu_account.h"
#include "base/error.h"
#include "core/adapter_set.h"
#include "core/types.h"
#include "model/embedder.h"

namespace chasqui {

// One request. Its owner keeps it until it is over.
struct EmbeddingWait {
  std::uint32_t tenant = 0;
  AdapterSetPtr adapters{};
  std::vector<std::vector<Token>> inputs{};
  std::function<bool()> gone{};  // the client has left

  std::size_t begun = 0;       // inputs that were taken
  TimePoint started{};         // when its first job began
  std::uint64_t last_job = 0;  // that inputs of it were in
  std::int32_t jobs = 0;       // … how many
  std::int32_t shared = 0;     // … that had inputs of others, too
  Duration cpu{};              // processor time of its shares of these jobs
  std::optional<double> joules{};
  bool left = false;
  std::vector<Embedded> out{};
  std::optional<Error> error{};

  bool over() const { return left || error || out.size() == inputs.size(); }
};

class EmbeddingLine {
 public:
  // Of one job: the next request waits for no more.
  static constexpr std::size_t kJobTokens = 512;

  struct Job {
    std::uint64_t number = 0;
    AdapterSetPtr adapters{};
    std::vector<std::vector<Token>> inputs{};
    std::vector<EmbeddingWait*> of{};    // whose each of them is
    std::vector<std::size_t> tokens{};   // … and how long
    std::vector<EmbeddingWait*> left{};  // those whose clients have left: they are over
  };

  // REQUIRES: it has inputs
  void add(EmbeddingWait& wait);
  // Inputs of up to kJobTokens in all, or one; none: no request waits any more.
  Job next();
  // What has become of a job, and what it took: each request's part by its tokens. Those that are over
  // now are the line's no more.
  void give(const Job& job, Result<std::vector<Embedded>> vectors, const CpuShare& cost = {});
  // One that waits; null: none does.
  EmbeddingWait* front() const;

 private:
  struct Tenant {
    std::uint64_t tokens = 0;  // taken so far
    std::deque<EmbeddingWait*> waits{};
  };
  Tenant* whose_turn();
  static void share(const Job& job, const CpuShare& cost);

  std::map<std::uint32_t, Tenant> tenants_;  // that have waits
  std::uint64_t jobs_ = 0;                   // so far
};

}  // namespace chasqui
