// The queue of --batch-queue in a NATS server with JetStream (2.9 or newer): a stream of lines, each of a subject of
// its own, that a consumer of all nodes takes from, and a stream of results with a consumer for each home. Used by the
// thread of the queue.
//
//   chasqui_batch_lines    chasqui.batch.lines.HOME.BATCH.LINE
//   chasqui_batch_results  chasqui.batch.results.HOME
//
// What is withdrawn is also told to all nodes at once (chasqui.batch.withdrawn), so that those that run it stop.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/line_queue.h"
#include "store/nats_library.h"

namespace chasqui::store {

// nats://[USER:PASSWORD@]HOST[:PORT].
struct NatsAddress {
  std::string host;
  std::uint16_t port = 4222;
  std::string user;
  std::string password;

  // Without the password, for messages.
  std::string shown() const;
};
// invalid_request, without a field, says what is wrong; never the password.
Result<NatsAddress> read_nats_address(std::string_view url);

class NatsLineQueue final : public LineQueue {
 public:
  // `library` outlives it. `patience`: for connecting, and for each answer.
  NatsLineQueue(const NatsLibrary& library, NatsAddress address, Duration patience);
  ~NatsLineQueue() override;

  std::string shown() const override { return address_.shown(); }
  void be(std::string home) override { home_ = std::move(home); }
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
  struct NatsLink;

  Error broken(const std::string& what, natsStatus status);
  Result<void> connect();
  Result<void> make_stream(const char* name, const char* subjects);
  Result<void> make_consumer(const char* stream, const std::string& name, const std::string& subject, Duration idle);
  Result<void> subscribe(natsSubscription*& out, const char* stream, const std::string& consumer,
                         const std::string& subject);
  Result<Posted> send(const std::string& subject, const std::string& message, bool only_if_none);
  Result<void> tell(const std::string& receipt, std::string_view what);
  Result<void> flush();
  Result<std::vector<TakenMessage>> fetch(natsSubscription* from, std::size_t most);
  void hear_withdrawals();

  const NatsLibrary& nats_;
  const NatsAddress address_;
  const Duration patience_;
  std::string home_;
  std::unique_ptr<NatsLink> link_;   // null: not connected
  std::set<std::string> withdrawn_;  // subjects of lines, since the last keep()
};

}  // namespace chasqui::store
