#include "api/session/session_persister.h"

#include <algorithm>
#include <utility>

#include "api/session/store_words.h"
#include "base/log.h"

namespace chasqui {
namespace {

SessionImage image_of(const Session& session, std::int64_t now) {
  return {session.id,       session.owner,      session.serial, now,
          session.settings, session.vocabulary, session.tokens, session.chat};
}

const Counter kNothingWritten;          // where only metrics are shown
constexpr std::size_t kJobsMax = 1024;  // sessions that are taken from other nodes, and a batch

// `then` comes behind what is still to be written.
void add_change(SessionChange& change, SessionChange then) {
  change.ttl = then.ttl;
  change.made = then.made;
  if (!then.turn || (!change.image && !change.turn)) {
    change = std::move(then);
  } else if (change.image) {
    add_turn(*change.image, std::move(*then.turn));
  } else {
    add_turn(*change.turn, std::move(*then.turn));
  }
}

}  // namespace

SessionPersister::SessionPersister(std::shared_ptr<SessionWriter> writer, net::EventLoop& loop, const Clock& clock)
    : writer_(std::move(writer)),
      loop_(loop),
      clock_(clock),
      pool_(std::make_unique<net::OffloadPool>(
          loop,
          net::OffloadOptions{.threads = 1, .queue_jobs = kJobsMax, .stack_bytes = 1 << 20, .name = "sessions"})) {}

SessionPersister::~SessionPersister() = default;

void SessionPersister::bring_back(SessionStore& store, SessionTable& sessions, const KeyRing& keys,
                                  TokenCount vocabulary) {
  const std::int64_t now = clock_.unix_seconds();
  SessionStore::Found found = store.load({vocabulary}, now);
  std::size_t left = 0;
  for (SessionImage& image : found.sessions) {
    const auto tenant = keys.tenant_of(image.owner);
    const seconds unused(std::max<std::int64_t>(0, now - image.used));
    const SessionOwner owner{tenant.value_or(0), 0, image.owner};
    const std::string id = image.id.text;
    Noted noted{.tokens = image.tokens.size(), .chat = image.chat, .owner = image.owner, .turns = 0};
    if (tenant && sessions.bring_back(owner, std::move(image), clock_.now() - unused)) {
      noted_.emplace(id, std::move(noted));
    } else {
      ++left;
    }
  }
  brought_back_.add(found.sessions.size() - left);
  damaged_.set(static_cast<std::int64_t>(found.damaged));
  foreign_.set(static_cast<std::int64_t>(found.foreign));
  left_.set(static_cast<std::int64_t>(left));
  log_info("sessions on disk", {{"folder", writer_->place()},
                                {"sessions", found.sessions.size() - left},
                                {"expired", found.expired},
                                {"damaged", found.damaged},
                                {"cut", found.cut},
                                {"foreign", found.foreign},
                                {"left", left}});
  sessions.set_journal(this);
}

void SessionPersister::share(SessionTable& sessions) {
  shared_ = &sessions;
  sessions.set_journal(this);
}

void SessionPersister::adopt(const std::string& id, std::uint64_t lease) {
  noted_.insert_or_assign(id, Noted{.lease = lease});
  // Their clients were told that it failed, and no other lease can make it true.
  std::erase_if(failed_, [&](const auto& each) { return each.first.first == id && each.first.second != lease; });
  brought_back_.add();
}

std::uint64_t SessionPersister::lease_of(const std::string& id) const {
  const auto noted = noted_.find(id);
  return noted != noted_.end() ? noted->second.lease : 0;
}

bool SessionPersister::is_changing(const std::string& id) const {
  const auto in = [&](const Pending& changes) {
    const auto found = changes.lower_bound({id, 0});
    return found != changes.end() && found->first.first == id;
  };
  const auto is_it = [&](const SessionChange& change) { return change.id == id; };
  return in(pending_) || in(failed_) || (writing_ && std::ranges::any_of(*writing_, is_it));
}

bool SessionPersister::is_leaving(const std::string& id, std::uint64_t lease) const {
  const auto leaves = [](const SessionChange& change) { return !change.image && !change.turn; };
  const auto in = [&](const Pending& changes) {
    const auto found = changes.find({id, lease});
    return found != changes.end() && leaves(found->second);
  };
  const auto written = [&](const SessionChange& change) { return change.id == id && change.lease == lease; };
  if (in(pending_) || in(failed_) || !writing_) return in(pending_) || in(failed_);
  const auto found = std::ranges::find_if(*writing_, written);
  return found != writing_->end() && leaves(*found);
}

void SessionPersister::changed(const Session& session) {
  const std::int64_t now = clock_.unix_seconds();
  // The first lease is of the node that has made the session.
  Noted fresh{.lease = shared_ != nullptr ? 1U : 0U, .made = true};
  Noted& noted = noted_.try_emplace(session.id.text, std::move(fresh)).first->second;
  SessionChange change{.id = session.id.text, .lease = noted.lease, .owner = session.owner, .made = noted.made};
  change.ttl = std::chrono::duration_cast<seconds>(session.settings.ttl).count();
  if (noted.turns >= writer_->turns_max()) {
    change.image = image_of(session, now);
    noted.turns = 0;
  } else {
    // A history grows, or is taken back to what it was.
    const std::size_t kept = std::min(noted.tokens, session.tokens.size());
    SessionTurn turn{.used = now, .kept = kept, .before = noted.chat, .chat = session.chat};
    turn.tokens.assign(session.tokens.begin() + static_cast<std::ptrdiff_t>(kept), session.tokens.end());
    change.turn = std::move(turn);
    ++noted.turns;
  }
  noted.tokens = session.tokens.size();
  noted.chat = session.chat;
  noted.owner = session.owner;
  note(std::move(change));
}

void SessionPersister::removed(const SessionId& id) {
  SessionChange change{.id = id.text};
  if (const auto noted = noted_.find(id.text); noted != noted_.end()) {
    change.lease = noted->second.lease;
    change.owner = noted->second.owner;
    noted_.erase(noted);
  }
  note(std::move(change));
}

void SessionPersister::note(SessionChange change) {
  ++changes_;
  SessionChange empty{.id = change.id, .lease = change.lease, .owner = change.owner};
  SessionChange& pending = pending_.try_emplace({change.id, change.lease}, std::move(empty)).first->second;
  add_change(pending, std::move(change));
  if (!writing_ && pool_) {
    writing_ = take_batch();
    loop_.spawn(write_all(), "session persister");
  }
}

SessionPersister::Batch SessionPersister::take_batch() {
  for (auto& [key, change] : failed_) {
    const auto newer = pending_.find(key);
    if (newer != pending_.end()) add_change(change, std::move(newer->second));
    pending_.insert_or_assign(key, std::move(change));
  }
  failed_.clear();
  auto batch = std::make_shared<std::vector<SessionChange>>();
  for (auto& [key, change] : pending_) batch->push_back(std::move(change));
  pending_.clear();
  taken_ = changes_;
  return batch;
}

net::Awaitable<void> SessionPersister::write_all() {
  while (writing_) {
    const TimePoint started = clock_.now();
    auto work = [writer = writer_, batch = writing_] { return writer->write(*batch); };
    Result<std::vector<std::optional<Error>>> outcome = co_await pool_->run(std::move(work));
    write_seconds_.observe(to_seconds(clock_.now() - started));
    if (!outcome) outcome = std::vector<std::optional<Error>>(writing_->size(), outcome.error());
    take_outcome(*writing_, *outcome);
    done_ = taken_;
    wake();
    writing_ = pending_.empty() ? nullptr : take_batch();
  }
}

void SessionPersister::take_outcome(const std::vector<SessionChange>& batch,
                                    const std::vector<std::optional<Error>>& outcome) {
  failure_.reset();
  failures_now_.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto noted = noted_.find(batch[i].id);
    if (!outcome[i]) {
      written_.add();
      if (noted != noted_.end() && noted->second.lease == batch[i].lease) noted->second.made = false;
      continue;
    }
    failures_now_.insert_or_assign({batch[i].id, batch[i].lease}, *outcome[i]);
    if (outcome[i]->code == ErrorCode::conflict) {
      pass_on(batch[i]);
      continue;
    }
    failures_.add();
    failure_ = outcome[i];
    // Behind a file that is gone nothing can be written: the next change writes the session whole.
    if (failure_->code != ErrorCode::not_found) {
      failed_.insert_or_assign({batch[i].id, batch[i].lease}, batch[i]);
    } else if (noted != noted_.end()) {
      noted->second.turns = SIZE_MAX;
    }
  }
  if (failure_) {
    log_error("sessions could not be written", {{"place", writer_->place()},
                                                {"sessions", failures_now_.size()},
                                                {"one", failures_now_.begin()->first.first},
                                                {"reason", failure_->message}});
  }
}

// Unless it has come back since.
void SessionPersister::pass_on(const SessionChange& change) {
  const auto noted = noted_.find(change.id);
  if (noted == noted_.end() || noted->second.lease != change.lease) return;
  passed_on_.add();
  if (shared_ == nullptr || shared_->leave({change.id})) return void(noted_.erase(noted));
  noted->second.turns = SIZE_MAX;  // what comes of its use meets the same answer
}

void SessionPersister::wake() {
  for (Waiter* waiter : waiters_) {
    if (waiter->until > done_) continue;
    waiter->failure = failure_of(waiter->key);  // now: the next batch tries again
    waiter->signal.notify();
  }
}

// That of its newest change, which may be its end.
SessionPersister::Key SessionPersister::newest_of(const std::string& id) const {
  if (noted_.contains(id)) return {id, lease_of(id)};
  Key newest{id, 0};
  const auto look = [&](const SessionChange& change) {
    if (change.id == id) newest.second = std::max(newest.second, change.lease);
  };
  for (const Pending* changes : {&failed_, &pending_}) {
    for (auto each = changes->lower_bound({id, 0}); each != changes->end() && each->first.first == id; ++each) {
      look(each->second);
    }
  }
  if (writing_) std::ranges::for_each(*writing_, look);
  return newest;
}

std::optional<Error> SessionPersister::failure_of(const Key& key) const {
  const auto found = failures_now_.find(key);
  return found != failures_now_.end() ? std::optional(found->second) : std::nullopt;
}

net::Awaitable<Result<void>> SessionPersister::kept(std::string id) {
  Key key = newest_of(id);
  std::optional<Error> failure = failure_of(key);
  if (done_ < changes_) {
    Waiter waiter(*this, std::move(key), changes_);
    co_await waiter.signal.wait();
    failure = waiter.failure;
  }
  if (!failure) co_return Result<void>();
  if (failure->code == ErrorCode::conflict) co_return *failure;
  co_return Error{
      ErrorCode::unavailable,
      std::string("the session has changed but could not be ") +
          (shared_ != nullptr ? "kept (" + in_store_words(*failure).message : "written to disk (" + failure->message) +
          "): look at it before you try again",
      ""};
}

void SessionPersister::finish() {
  pool_.reset();  // what it was writing has been written, or never will be
  // Twice is as good as once.
  if (const Batch last = std::exchange(writing_, nullptr)) {
    for (const SessionChange& change : *last) failed_.insert_or_assign({change.id, change.lease}, change);
  }
  const Batch rest = take_batch();
  if (!rest->empty()) take_outcome(*rest, writer_->write(*rest));
}

void SessionPersister::add_to(MetricsPage& page) const {
  metrics_.add_to(page);
  page.add("chasqui_session_written_bytes_total", "Bytes of sessions written to disk.",
           writer_ ? writer_->bytes_written() : kNothingWritten);
}

}  // namespace chasqui
