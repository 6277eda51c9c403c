#include "engine/snapshot_disk.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace chasqui {
namespace {

// Beyond so many waiting orders the order of use is not worth keeping exactly.
constexpr std::size_t kOrdersMax = 4096;

}  // namespace

SnapshotDisk::SnapshotDisk(std::shared_ptr<SnapshotFolder> folder, const SnapshotLimits& limits, const Clock& clock,
                           Deliver deliver)
    : folder_(std::move(folder)),
      limits_(limits),
      clock_(clock),
      deliver_(std::move(deliver)),
      inbox_(kOrdersMax),
      thread_([this] { run(); }) {}

SnapshotDisk::~SnapshotDisk() {
  inbox_.close();
  thread_.join();
}

void SnapshotDisk::order(std::vector<DiskOrder>& orders) {
  if (inbox_.over_capacity()) {
    std::erase_if(orders, [](const DiskOrder& order) { return order.kind == DiskOrder::Kind::touch; });
  }
  inbox_.push_all(orders);
}

void SnapshotDisk::run() {
  std::vector<DiskOrder> orders;
  for (;;) {
    inbox_.drain(orders, Wait::yes);
    if (orders.empty()) return;  // closed
    // Somebody waits for what is read. No file is ordered to be read and removed at the same time.
    std::ranges::stable_partition(orders, [](const DiskOrder& o) { return o.kind == DiskOrder::Kind::read; });
    for (DiskOrder& order : orders) carry_out(order);
  }
}

void SnapshotDisk::carry_out(DiskOrder& order) {
  if (order.kind == DiskOrder::Kind::remove) return folder_->remove(order.file);
  if (order.kind == DiskOrder::Kind::touch) return folder_->touch(order.file);
  DiskOutcome outcome{.kind = order.kind, .file = order.file};
  const TimePoint started = clock_.now();
  if (order.kind == DiskOrder::Kind::read) {
    read(order, outcome);
  } else {
    write(order, outcome);
  }
  outcome.took = clock_.now() - started;
  deliver_(std::move(outcome));
}

void SnapshotDisk::read(const DiskOrder& order, DiskOutcome& outcome) {
  auto loaded = folder_->read(order.file, limits_);
  if (!loaded) {
    log_warning("a snapshot file is refused; its tokens are computed again",
                {{"file", order.file}, {"code", name(loaded.error().code)}, {"reason", loaded.error().message}});
    outcome.error = loaded.error();
    return;
  }
  outcome.kv = std::move(loaded->kv);
  outcome.key = loaded->head.key;
  outcome.tokens = std::move(loaded->head.tokens);
}

void SnapshotDisk::write(DiskOrder& order, DiskOutcome& outcome) {
  outcome.kv = std::move(order.kv);
  if (auto written = folder_->write(order.file, order.key, order.tokens, *outcome.kv); !written) {
    if (!complained_) {
      log_warning("a snapshot could not be written",
                  {{"folder", folder_->path()}, {"reason", written.error().message}});
    }
    complained_ = true;
    outcome.error = written.error();
    return;
  }
  complained_ = false;
}

}  // namespace chasqui
