// The queue of --batch-queue in Redis (6.2 or newer), or what speaks its protocol: a stream of lines that a consumer
// group of all nodes reads, for each home a stream of results, and a hash that says where its lines are, so that none
// is there twice. What has to change together does so in a script. Used by the thread of the queue.
//
//   {chasqui}:batch:lines          entries h (home), k (key), m (message)
//   {chasqui}:batch:results:HOME   entries m (message)
//   {chasqui}:batch:index:HOME     key -> id of the entry in lines; "done": the result is in results
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/line_queue.h"
#include "store/redis_connection.h"

namespace chasqui::store {

class RedisLineQueue final : public LineQueue {
 public:
  // `clock` outlives it.
  RedisLineQueue(RedisAddress address, Duration patience, const Clock& clock);

  std::string shown() const override { return redis_.address().shown(); }
  void be(std::string home) override;
  Result<void> open() override;

  Result<std::vector<Posted>> publish(std::span<const LinePost> lines) override;
  Result<void> withdraw(std::span<const LineKey> lines) override;
  Result<std::vector<LineKey>> outstanding() override;
  Result<std::vector<TakenMessage>> results(std::size_t most, std::size_t bytes) override;
  Result<void> acknowledge(std::span<const LinePost> results) override;

  Result<std::vector<TakenMessage>> take(std::size_t most) override;
  Result<std::vector<std::string>> keep(std::span<const LinePost> lines) override;
  Result<Posted> answer(const LinePost& line) override;
  Result<void> give_back(const LinePost& line) override;
  Result<void> drop(const LinePost& line) override;

 private:
  Result<std::vector<TakenMessage>> claim(std::size_t most);
  Result<void> count_deliveries(std::vector<TakenMessage>& claimed);

  RedisConnection redis_;
  const Clock& clock_;
  std::string home_;
  std::string cursor_;      // the newest result that was read; empty: none
  std::string claim_from_;  // where the next claim begins
  TimePoint claim_at_{};
};

}  // namespace chasqui::store
