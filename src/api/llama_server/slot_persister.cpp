#include "api/llama_server/slot_persister.h"

#include <utility>

namespace chasqui {

SlotPersister::SlotPersister(std::shared_ptr<SlotFiles> files, Engine& engine, const Clock& clock, net::EventLoop& loop)
    : store_(std::move(files), engine, clock),
      pool_(loop, {.threads = 1, .queue_jobs = 1024, .stack_bytes = 1 << 20, .name = "slots"}) {}

net::Awaitable<Result<SlotTransfer>> SlotPersister::save(SlotId slot, Tenant tenant, std::string filename, bool alone) {
  auto work = [this, slot, tenant, filename = std::move(filename), alone] {
    return store_.save(slot, tenant, filename, alone);
  };
  net::OffloadTerms terms;
  terms.owner = tenant.id;
  Result<SlotTransfer> done = co_await pool_.run(std::move(work), std::move(terms));
  (done ? metrics_.saved : metrics_.refused).add();
  co_return done;
}

net::Awaitable<Result<SlotTransfer>> SlotPersister::restore(SlotId slot, Tenant tenant, std::string filename) {
  auto work = [this, slot, tenant, filename = std::move(filename)] { return store_.restore(slot, tenant, filename); };
  net::OffloadTerms terms;
  terms.owner = tenant.id;
  Result<SlotTransfer> done = co_await pool_.run(std::move(work), std::move(terms));
  (done ? metrics_.restored : metrics_.refused).add();
  co_return done;
}

}  // namespace chasqui
