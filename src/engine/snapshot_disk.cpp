#include "engine/snapshot_disk.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/thread_name.h"

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
      reads_(kOrdersMax),
      rest_(kOrdersMax),
      reader_([this] { run(reads_, "disk-reader"); }),
      writer_([this] { run(rest_, "disk-writer"); }) {}

SnapshotDisk::~SnapshotDisk() {
  reads_.close();
  rest_.close();
  reader_.join();
  writer_.join();
}

void SnapshotDisk::order(std::vector<DiskOrder>& orders) {
  std::erase_if(orders, [this](DiskOrder& order) {
    if (order.kind == DiskOrder::Kind::touch) return rest_.over_capacity();
    if (order.kind != DiskOrder::Kind::read) return false;
    to_read_.push_back(std::move(order));
    return true;
  });
  reads_.push_all(to_read_);
  rest_.push_all(orders);
}

void SnapshotDisk::run(Mailbox<DiskOrder>& inbox, const char* name) {
  name_this_thread(name);
  std::vector<DiskOrder> orders;
  for (;;) {
    inbox.drain(orders, Wait::yes);
    if (orders.empty()) return;  // closed
    for (DiskOrder& order : orders) carry_out(order);
  }
}

void SnapshotDisk::carry_out(DiskOrder& order) {
  if (order.kind == DiskOrder::Kind::remove) return remove(order.file);
  if (order.kind == DiskOrder::Kind::touch) return folder_->touch(order.file);
  DiskOutcome outcome{.kind = order.kind, .file = order.file};
  const TimePoint started = clock_.now();
  if (order.kind == DiskOrder::Kind::read) {
    read(order, outcome);
  } else if (order.kind == DiskOrder::Kind::write) {
    write(order, outcome);
  } else {
    sync(outcome);
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
  outcome.key = order.key;
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

void SnapshotDisk::remove(std::uint64_t file) {
  const auto removed = folder_->remove(file);
  if (removed) return;
  log_warning("a snapshot file could not be removed", {{"file", file}, {"reason", removed.error().message}});
  if (left_.size() < kOrdersMax) left_.push_back(file);
}

// Says of no removal that it is done unless it is.
void SnapshotDisk::sync(DiskOutcome& outcome) {
  std::erase_if(left_, [&](std::uint64_t file) {
    const auto removed = folder_->remove(file);
    if (!removed) outcome.error = removed.error();
    return removed.has_value();
  });
  if (auto synced = folder_->sync(); !synced) outcome.error = synced.error();
}

}  // namespace chasqui
