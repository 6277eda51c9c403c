#include "engine/media_encodings.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "base/thread_name.h"
#include "core/lasting_tenant.h"

namespace chasqui {

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
  encoder_->forget(owner_of(tenant));
  const auto lasting = lasting_tenant(tenant, keeping_.shared_by_tenants);
  if (!keeping_.folder || !lasting) return erased(0, true);
  to_do_.emplace_back(Erasure{*lasting, std::move(erased)});
  inbox_.push_all(to_do_);
}

void MediaEncodings::run() {
  std::vector<Job> jobs;
  for (;;) {
    inbox_.drain(jobs, Wait::yes);
    if (jobs.empty()) return;  // closed
    for (const Job& job : jobs) {
      if (const auto* erasure = std::get_if<Erasure>(&job)) {
        erase(*erasure);
      } else if (const Ordered& ordered = std::get<Ordered>(job); ordered.wanted->load(std::memory_order_relaxed)) {
        encode(ordered);
      }
    }
  }
}

void MediaEncodings::erase(const Erasure& erasure) {
  const auto removed = keeping_.folder->forget(erasure.tenant);
  if (!removed) log_error("files could not be erased", {{"reason", removed.error().message}});
  erasure.erased(removed ? *removed : 0, removed.has_value());
}

// From then on it is in memory.
bool MediaEncodings::read_file(const MediaUnit& unit, const Tenant& tenant) {
  const auto lasting = lasting_tenant(tenant, keeping_.shared_by_tenants);
  if (!keeping_.folder || !lasting || encoder_->find(unit, owner_of(tenant))) return false;
  auto rows = std::make_shared<EncodedMedia>();
  rows->values = keeping_.folder->read(*lasting, unit);
  rows->width = rows->values.size() / static_cast<std::size_t>(unit.positions);
  return !rows->values.empty() && encoder_->keep(unit, owner_of(tenant), std::move(rows));
}

void MediaEncodings::write_file(const MediaUnit& unit, const Tenant& tenant, const EncodedMedia& rows) {
  const auto lasting = lasting_tenant(tenant, keeping_.shared_by_tenants);
  if (keeping_.folder && lasting) keeping_.folder->write(*lasting, unit, rows.values);
}

void MediaEncodings::encode(const Ordered& ordered) {
  const Request& request = *ordered.order.request;
  const MediaUnit& unit = *unit_at(request.media, ordered.order.begin);
  const TimePoint started = clock_.now();
  const bool read = read_file(unit, request.tenant);
  const auto encoded = encoder_->encode(unit, owner_of(request.tenant));
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
  if (encoded && encoded->fresh) write_file(unit, request.tenant, *encoded->rows);
}

}  // namespace chasqui
