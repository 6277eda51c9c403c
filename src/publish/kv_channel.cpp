#include "publish/kv_channel.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "publish/msgpack_writer.h"

namespace chasqui::publish {
namespace {

// Events of a batch; routers read a batch at once.
constexpr std::size_t kBatchBytes = std::size_t{64} << 10;

// Names of vLLM's and of routers'.
std::string_view name_of(Medium medium) { return medium == Medium::memory ? "GPU" : "DISK"; }

void write_hashes(const std::vector<BlockHash>& hashes, MsgpackWriter& out) {
  out.array(hashes.size());
  for (const BlockHash hash : hashes) out.number(hash);
}

void write(const StoredRun& run, MsgpackWriter& out) {
  out.array(8);
  out.text("BlockStored");
  write_hashes(run.hashes, out);
  run.parent != 0 ? out.number(run.parent) : out.nil();
  out.array(run.tokens.size());
  for (const Token token : run.tokens) out.number(static_cast<std::uint64_t>(token));
  out.number(static_cast<std::uint64_t>(kHeldBlock));
  out.nil();
  out.text(name_of(run.medium));
  run.adapter.empty() ? out.nil() : out.text(run.adapter);
}

void write(const RemovedBlocks& removed, MsgpackWriter& out) {
  out.array(3);
  out.text("BlockRemoved");
  write_hashes(removed.hashes, out);
  out.text(name_of(removed.medium));
}

}  // namespace

KvChannel::KvChannel(const BlockHasher& hash, KvEventMetrics& metrics, const KeptLimits& limits)
    : limits_(limits), metrics_(metrics), blocks_(hash) {}

KvChannel::~KvChannel() {
  metrics_.held.add(-static_cast<std::int64_t>(shown_blocks_));
  metrics_.kept_bytes.add(-static_cast<std::int64_t>(shown_bytes_));
}

void KvChannel::apply(KvNews news, double now, std::vector<KvBatch>& out) {
  const bool wrong = news.names && blocks_.name(std::move(*news.names));
  blocks_.apply(news.changes);
  const bool first = next_ == 0;  // what a router knows of an earlier process is wrong
  const BlockChanges told = blocks_.take_changes();
  wrong ? tell_all(now, out) : publish(told, first, now, out);
}

void KvChannel::tell_all(double now, std::vector<KvBatch>& out) {
  metrics_.told_again.add();
  publish(blocks_.all(), true, now, out);
}

void KvChannel::clear(double now, std::vector<KvBatch>& out) { publish({}, true, now, out); }

// A batch that is cut goes on in the next one: blocks are stored after those before them all the same.
void KvChannel::publish(const BlockChanges& changes, bool cleared, double now, std::vector<KvBatch>& out) {
  std::string events;
  std::size_t count = 0;
  MsgpackWriter writer(events);
  const auto ended = [&] {
    if (++count; events.size() >= kBatchBytes) send(std::exchange(count, 0), std::exchange(events, {}), now, out);
  };
  telling_ = cleared;
  if (cleared) {
    told_all_ = next_;
    writer.array(1);
    writer.text("AllBlocksCleared");
    ended();
  }
  for (const StoredRun& run : changes.stored) {
    write(run, writer);
    metrics_.stored.add(run.hashes.size());
    ended();
  }
  for (const RemovedBlocks& removed : changes.removed) {
    write(removed, writer);
    metrics_.removed.add(removed.hashes.size());
    ended();
  }
  if (count > 0) send(count, events, now, out);
  show();
}

void KvChannel::send(std::size_t events, const std::string& written, double now, std::vector<KvBatch>& out) {
  std::string payload;
  MsgpackWriter writer(payload);
  writer.array(3);
  writer.real(now);
  writer.array(events);
  payload += written;
  writer.number(0);
  out.push_back({next_++, std::make_shared<const std::string>(std::move(payload))});
  if (limits_.batches > 0) keep(out.back());
}

// An answer that cannot go back as far as was asked begins with the last telling of everything. So that is dropped only
// when what came after it is too much by itself: then all is told again.
void KvChannel::keep(const KvBatch& batch) {
  const std::size_t bytes = batch.payload->size();
  kept_.push_back(batch);
  kept_bytes_ += bytes;
  later_bytes_ = telling_ ? 0 : later_bytes_ + bytes;
  if (telling_) told_all_end_ = next_;
  const bool whole = next_ - told_all_end_ <= limits_.batches && later_bytes_ <= limits_.bytes;
  while (kept_.size() > limits_.batches || kept_bytes_ > limits_.bytes) {
    if (kept_.empty() || (whole && oldest() == told_all_)) break;
    kept_bytes_ -= kept_.front().payload->size();
    kept_.pop_front();
  }
}

void KvChannel::show() {
  metrics_.held.add(static_cast<std::int64_t>(blocks_.size()) -
                    static_cast<std::int64_t>(std::exchange(shown_blocks_, blocks_.size())));
  metrics_.kept_bytes.add(static_cast<std::int64_t>(kept_bytes_) -
                          static_cast<std::int64_t>(std::exchange(shown_bytes_, kept_bytes_)));
}

std::uint64_t KvChannel::repeats_from(std::uint64_t number, double now, std::vector<KvBatch>& out) {
  if (number >= oldest() && number <= next_) return number;
  if (told_all_ < oldest() || next_ == 0) tell_all(now, out);
  return told_all_;
}

const KvBatch* KvChannel::kept(std::uint64_t number) const {
  return number >= oldest() && number < next_ ? &kept_[number - oldest()] : nullptr;
}

}  // namespace chasqui::publish
