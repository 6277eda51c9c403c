// The requests of a group, one after the other: a prompt that the server has never seen, how long the answer may be,
// and whether the client will leave early. The same seed makes the same jobs. Owned by its group; single-threaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load_spec.h"
#include "bench/random_source.h"
#include "bench/trace.h"

namespace chasqui::bench {

struct Job {
  std::string prompt;
  std::int32_t max_tokens = 0;
  std::string priority;
  std::string key;
  bool stream = true;
  std::optional<std::int32_t> abandon_after;  // leaves after so many tokens
};

class JobMaker {
 public:
  JobMaker(const LoadSpec& spec, std::uint64_t seed);

  Job next();
  // The job of a line of a trace.
  Job from_trace(const TraceEntry& entry);

 private:
  void append_words(std::string& text, std::int64_t count, RandomSource& random) const;
  std::int32_t deal_max_tokens();
  void decide_abandon(Job& job);

  const LoadSpec spec_;
  RandomSource words_, lengths_, leavers_;
  std::string shared_prefix_;
  std::vector<Span> deck_;
  std::size_t dealt_ = 0;
};

}  // namespace chasqui::bench
