// Saves what slots have left to files, and brings it back: the folder of --slot-save-path behind the routes of
// llama-server. A thread of its own does all of it (engine/slot_store), one after the other, so that neither the loop
// nor the offload pool waits for a disk or for a worker's step. Owned by serve(); loop thread only.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metric_set.h"
#include "engine/slot_store.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

struct SlotMetrics : MetricSet {
  Counter saved{*this, {"chasqui_slots_saved_total", "Slots that were saved to files."}};
  Counter restored{*this, {"chasqui_slots_restored_total", "Slots that were restored from files."}};
  Counter refused{*this, {"chasqui_slot_files_refused_total", "Saves and restores of slots that came to nothing."}};
};

class SlotPersister {
 public:
  // The others outlive the persister.
  SlotPersister(std::shared_ptr<SlotFiles> files, Engine& engine, const Clock& clock, net::EventLoop& loop);

  // As SlotStore; overloaded when many are waiting.
  net::Awaitable<Result<SlotTransfer>> save(SlotId slot, Tenant tenant, std::string filename, bool alone);
  net::Awaitable<Result<SlotTransfer>> restore(SlotId slot, Tenant tenant, std::string filename);

  const SlotMetrics& metrics() const { return metrics_; }

 private:
  SlotStore store_;  // the thread's
  SlotMetrics metrics_;
  net::OffloadPool pool_;  // last: its thread ends before what it uses
};

}  // namespace chasqui
