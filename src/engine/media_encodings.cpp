#include "engine/media_encodings.h"

#include <string>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "core/lasting_tenant.h"

namespace chasqui {
namespace {

// Of what waits to be written. It stays in memory meanwhile, which has four times as much.
constexpr std::size_t kUnwrittenMax = kSizeLimit<"encoded_media_bytes"> / 4;

std::size_t bytes_of(const EncodedMedia& rows) { return rows.values.size() * sizeof(float); }

}  // namespace

MediaEncodings::MediaEncodings(std::shared_ptr<MediaEncoder> encoder, Keeping keeping, const Clock& clock,
                               Deliver deliver, std::size_t worker)
    : encoder_(std::move(encoder)),
      keeping_(std::move(keeping)),
      clock_(clock),
      deliver_(std::move(deliver)),
      inbox_(1),  // beyond it: there is one order for a slot
      thread_([this, worker] {
        name_this_thread("encoder-" + std::to_string(worker));
        run();
      }) {}

MediaEncodings::~MediaEncodings() {
  for (auto& [request, mine] : mine_) mine.wanted->store(false, std::memory_order_relaxed);
  inbox_.close();
  thread_.join();
}

void MediaEncodings::order(std::vector<EncodingOrder>& orders) {
  for (EncodingOrder& order : orders) {
    Mine& mine = mine_[order.request->id];
    if (!mine.wanted) mine.wanted = std::make_shared<std::atomic<bool>>(true);
    to_do_.emplace_back(Ordered{std::move(order), mine.wanted});
  }
  orders.clear();
  inbox_.push_all(to_do_);
}

void MediaEncodings::hold(EncodingOutcome outcome) {
  const auto mine = mine_.find(outcome.request);
  if (mine != mine_.end()) mine->second.rows = std::move(outcome.rows);
}

void MediaEncodings::forget(RequestId request) {
  const auto mine = mine_.find(request);
  if (mine == mine_.end()) return;
  mine->second.wanted->store(false, std::memory_order_relaxed);
  mine_.erase(mine);
}

void MediaEncodings::forget_tenant(const Tenant& tenant, Erased erased) {
  if (encoder_) encoder_->forget(tenant.id);
  if (!keeping_.folder) return erased(0, true);
  to_do_.emplace_back(Erasure{tenant, std::move(erased)});
  inbox_.push_all(to_do_);
}

// What is in the inbox goes before what waits here: an erasure is not kept waiting by the pictures of others.
void MediaEncodings::run() {
  std::vector<Job> jobs;
  for (;;) {
    const bool idle = orders_.empty() && unwritten_.empty();
    inbox_.drain(jobs, idle ? Wait::yes : Wait::no);
    if (idle && jobs.empty()) return;  // closed
    take(jobs);
    if (orders_.empty()) {
      write_one();
      continue;
    }
    const Ordered ordered = std::move(orders_.front());
    orders_.pop_front();
    if (ordered.wanted->load(std::memory_order_relaxed)) encode(ordered);
  }
}

void MediaEncodings::take(std::vector<Job>& jobs) {
  for (Job& job : jobs) {
    if (auto* ordered = std::get_if<Ordered>(&job)) {
      orders_.push_back(std::move(*ordered));
    } else {
      erase(std::get<Erasure>(job));
    }
  }
}

// Also what this thread, or that of another worker, has put into memory meanwhile.
void MediaEncodings::erase(const Erasure& erasure) {
  if (encoder_) encoder_->forget(erasure.tenant.id);
  const auto lasting = lasting_tenant(erasure.tenant, keeping_.shared_by_tenants);
  if (!lasting) return erasure.erased(0, true);
  std::erase_if(unwritten_, [&](const Unwritten& one) {
    if (one.tenant != *lasting) return false;
    unwritten_bytes_ -= bytes_of(*one.rows);
    return true;
  });
  const auto removed = keeping_.folder->forget(*lasting);
  if (!removed) log_error("files could not be erased", {{"reason", removed.error().message}});
  erasure.erased(removed ? *removed : 0, removed.has_value());
}

// From then on it is in memory.
bool MediaEncodings::read_file(const MediaUnit& unit, const Tenant& tenant) {
  const auto lasting = lasting_tenant(tenant, keeping_.shared_by_tenants);
  if (!keeping_.folder || !lasting || encoder_->find(unit, tenant.id)) return false;
  auto rows = std::make_shared<EncodedMedia>();
  rows->values = keeping_.folder->read(*lasting, unit);
  rows->width = rows->values.size() / static_cast<std::size_t>(unit.positions);
  return !rows->values.empty() && encoder_->keep(unit, tenant.id, std::move(rows));
}

void MediaEncodings::keep_for_writing(const Ordered& ordered, EncodedMediaPtr rows) {
  const Request& request = *ordered.order.request;
  const auto lasting = lasting_tenant(request.tenant, keeping_.shared_by_tenants);
  const std::size_t bytes = bytes_of(*rows);
  if (!keeping_.folder || !lasting || unwritten_bytes_ + bytes > kUnwrittenMax) return;
  MediaUnit unit = *unit_at(request.media, ordered.order.begin);
  unit.pixels.reset();
  unwritten_bytes_ += bytes;
  unwritten_.push_back({*lasting, std::move(unit), std::move(rows)});
}

void MediaEncodings::write_one() {
  if (unwritten_.empty()) return;
  const Unwritten one = std::move(unwritten_.front());
  unwritten_.pop_front();
  unwritten_bytes_ -= bytes_of(*one.rows);
  keeping_.folder->write(one.tenant, one.unit, one.rows->values);
}

void MediaEncodings::encode(const Ordered& ordered) {
  const Request& request = *ordered.order.request;
  const MediaUnit& unit = *unit_at(request.media, ordered.order.begin);
  const bool read = read_file(unit, request.tenant);
  const TimePoint started = clock_.now();
  const auto encoded = encoder_->encode(unit, request.tenant.id);
  EncodingOutcome outcome{.request = request.id, .begin = ordered.order.begin, .took = clock_.now() - started};
  if (encoded) {
    outcome.fresh = encoded->fresh;
    outcome.read = read && !encoded->fresh;
    outcome.rows = encoded->rows;
  } else {
    log_error("a picture or a sound cannot be encoded", {{"reason", encoded.error().message}});
    outcome.error = encoded.error();
  }
  deliver_(std::move(outcome));
  if (encoded && encoded->fresh) keep_for_writing(ordered, encoded->rows);
}

}  // namespace chasqui
