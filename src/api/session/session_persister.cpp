#include "api/session/session_persister.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace chasqui {
namespace {

SessionImage image_of(const Session& session, std::int64_t now) {
  return {session.id, session.owner, session.serial, now, session.settings, session.tokens, session.chat};
}

}  // namespace

SessionPersister::SessionPersister(std::unique_ptr<SessionStore> store, net::EventLoop& loop, const Clock& clock)
    : store_(std::move(store)),
      loop_(loop),
      clock_(clock),
      pool_(std::make_unique<net::OffloadPool>(
          loop, net::OffloadOptions{.threads = 1, .queue_jobs = 1, .stack_bytes = 1 << 20, .name = "sessions"})) {}

SessionPersister::~SessionPersister() = default;

void SessionPersister::bring_back(SessionTable& sessions, const KeyRing& keys, TokenCount vocabulary) {
  const std::int64_t now = clock_.unix_seconds();
  SessionStore::Found found = store_->load({vocabulary}, now);
  std::size_t left = 0;
  for (SessionImage& image : found.sessions) {
    const auto tenant = keys.tenant_of(image.owner);
    const seconds unused(std::max<std::int64_t>(0, now - image.used));
    const SessionOwner owner{tenant.value_or(0), 0, image.owner};
    if (!tenant || !sessions.bring_back(owner, std::move(image), clock_.now() - unused)) ++left;
  }
  brought_back_.add(found.sessions.size() - left);
  damaged_.set(static_cast<std::int64_t>(found.damaged));
  foreign_.set(static_cast<std::int64_t>(found.foreign));
  left_.set(static_cast<std::int64_t>(left));
  log_info("sessions on disk", {{"folder", store_->path()},
                                {"sessions", found.sessions.size() - left},
                                {"expired", found.expired},
                                {"damaged", found.damaged},
                                {"foreign", found.foreign},
                                {"left", left}});
  sessions.set_journal(this);
}

void SessionPersister::changed(const Session& session) {
  note(session.id.text, image_of(session, clock_.unix_seconds()));
}

void SessionPersister::removed(const SessionId& id) { note(id.text, std::nullopt); }

void SessionPersister::note(std::string id, std::optional<SessionImage> image) {
  ++changes_;
  pending_.insert_or_assign(std::move(id), std::move(image));
  if (!writing_ && pool_) {
    writing_ = take_batch();
    loop_.spawn(write_all(), "session persister");
  }
}

SessionPersister::Batch SessionPersister::take_batch() {
  pending_.merge(failed_);  // what is newer stays
  failed_.clear();
  auto batch = std::make_shared<std::vector<SessionChange>>();
  for (auto& [id, image] : pending_) batch->push_back({id, std::move(image)});
  pending_.clear();
  taken_ = changes_;
  return batch;
}

net::Awaitable<void> SessionPersister::write_all() {
  while (writing_) {
    const TimePoint started = clock_.now();
    auto work = [store = store_, batch = writing_] { return store->write(*batch); };
    Result<std::vector<std::optional<Error>>> outcome = co_await pool_->run(std::move(work));
    write_seconds_.observe(to_seconds(clock_.now() - started));
    CHECK(outcome.has_value(), "the only job of the session persister was refused");
    take_outcome(*writing_, *outcome);
    done_ = taken_;
    wake();
    writing_ = pending_.empty() ? nullptr : take_batch();
  }
}

void SessionPersister::take_outcome(const std::vector<SessionChange>& batch,
                                    const std::vector<std::optional<Error>>& outcome) {
  failure_.reset();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!outcome[i]) {
      written_.add();
      continue;
    }
    failures_.add();
    failure_ = outcome[i];
    failed_.insert_or_assign(batch[i].id, batch[i].image);
  }
  if (failure_) {
    log_error("sessions could not be written", {{"folder", store_->path()}, {"reason", failure_->message}});
  }
}

void SessionPersister::wake() {
  for (Waiter* waiter : waiters_) {
    if (waiter->until <= done_) waiter->signal.notify();
  }
}

net::Awaitable<Result<void>> SessionPersister::kept() {
  if (done_ < changes_) {
    Waiter waiter(*this, changes_);
    co_await waiter.signal.wait();
  }
  if (!failure_) co_return Result<void>();
  co_return Error{ErrorCode::unavailable,
                  "the session has changed but could not be written to disk (" + failure_->message +
                      "): look at it before you try again",
                  ""};
}

void SessionPersister::finish() {
  pool_.reset();  // what it was writing has been written
  const Batch last_written = std::exchange(writing_, nullptr);
  Batch rest = take_batch();
  std::vector<SessionChange> all = last_written ? *last_written : std::vector<SessionChange>();
  all.insert(all.end(), rest->begin(), rest->end());
  if (!all.empty()) take_outcome(all, store_->write(all));
}

void SessionPersister::add_to(MetricsPage& page) const {
  page.add("chasqui_session_files_written_total", "Changes of sessions written to disk, removals included.", written_);
  page.add("chasqui_session_write_failures_total", "Changes of sessions that could not be written.", failures_);
  page.add("chasqui_session_write_seconds", "Time until a batch of changes was on disk.", write_seconds_);
  page.add("chasqui_sessions_brought_back_total", "Sessions of an earlier process that go on.", brought_back_);
  page.add("chasqui_session_files_unused", "Files of sessions that were not used at the start, by reason.", damaged_,
           "reason=\"damaged\"");
  page.add("chasqui_session_files_unused", "Files of sessions that were not used at the start, by reason.", foreign_,
           "reason=\"foreign\"");
  page.add("chasqui_session_files_unused", "Files of sessions that were not used at the start, by reason.", left_,
           "reason=\"unknown_tenant\"");
}

}  // namespace chasqui
