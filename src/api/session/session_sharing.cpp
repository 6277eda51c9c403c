#include "api/session/session_sharing.h"

#include <algorithm>
#include <utility>

#include "api/session/store_words.h"
#include "base/ascii.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/session_input.h"

namespace chasqui {
namespace {

constexpr std::size_t kBringsMax = 512;   // sessions at once
constexpr std::size_t kAsksMax = 64;      // for moved answers
constexpr std::size_t kSavesMax = 64;     // answers whose KV waits
constexpr TokenCount kWorthKeeping = 64;  // tokens; fewer are computed as fast as they are read
constexpr Duration kSavesWait = seconds(5);
constexpr Duration kSweepEvery = seconds(60);
// Requests in sessions are noted above the slots that clients can name.
constexpr std::int32_t kFirstLabel = 1 << 20;
constexpr std::uint64_t kLabels = 1 << 20;

Error no_session_here() { return {ErrorCode::not_found, "there is no such session", ""}; }

// What is no name of ours asks no store for anything.
bool is_session_id(const std::string& id) {
  const auto plain = [](char c) { return is_ascii_word_or("_", c); };
  return id.starts_with("sess_") && id.size() <= 64 && std::ranges::all_of(id, plain);
}

}  // namespace

SessionSharing::SessionSharing(std::shared_ptr<SharedSessionStore> store, SessionPersister& persister,
                               SessionTable& sessions, net::EventLoop& loop, const Clock& clock)
    : store_(std::move(store)),
      persister_(persister),
      sessions_(sessions),
      loop_(loop),
      clock_(clock),
      next_sweep_(loop.executor()),
      claims_(std::make_unique<net::OffloadPool>(
          loop, net::OffloadOptions{.threads = 1, .queue_jobs = 4096, .stack_bytes = 1 << 20, .name = "leases"})),
      kv_(std::make_unique<net::OffloadPool>(
          loop,
          net::OffloadOptions{
              .threads = 1, .queue_jobs = kBringsMax + kSavesMax, .stack_bytes = 1 << 20, .name = "session-kv"})) {
  persister_.share(sessions);
  sweep_later();
}

SessionSharing::BringTurn::BringTurn(SessionSharing& owner, std::string session)
    : sharing(owner), id(std::move(session)), signal(owner.loop_) {
  std::list<BringTurn*>& turns = sharing.turns_[id];
  first = turns.empty();
  place = turns.insert(turns.end(), this);
}

SessionSharing::BringTurn::~BringTurn() {
  const auto turns = sharing.turns_.find(id);
  const bool was_next = turns->second.front() == this;
  turns->second.erase(place);
  if (turns->second.empty()) {
    sharing.turns_.erase(turns);
  } else if (was_next) {
    turns->second.front()->signal.notify();
  }
}

net::Awaitable<Result<void>> SessionSharing::bring(ServedModel& served, Tenant tenant, std::string id) {
  if (!is_session_id(id)) co_return no_session_here();
  if (turns_.size() >= kBringsMax && !turns_.contains(id)) {
    co_return Error{ErrorCode::overloaded, "too many sessions are asked for at once: retry later", ""};
  }
  const ModelUse use(served);
  BringTurn turn(*this, id);
  if (!turn.first) co_await turn.signal.wait();
  auto ask = [store = store_, id, owner = tenant.lasting] { return store->claim(id, owner); };
  const Result<SessionClaim> claim = co_await claims_->run(std::move(ask));
  if (!claim) {
    log_warning("it is not known whose a session is", {{"session", id}, {"reason", claim.error().message}});
    co_return in_store_words(claim.error());
  }
  if (claim->kind == SessionClaim::Kind::none || persister_.is_leaving(id, claim->lease)) co_return no_session_here();
  const bool same_lease = persister_.lease_of(id) == claim->lease;
  if (claim->kind == SessionClaim::Kind::here && same_lease && sessions_.has({id})) co_return Result<void>();
  const TimePoint started = clock_.now();
  Result<void> taken = co_await take_over(served, tenant, id, *claim);
  if (taken) {
    metrics_.taken.add();
    metrics_.take_seconds.observe(to_seconds(clock_.now() - started));
  } else if (taken.error().code != ErrorCode::not_found) {
    metrics_.refused.add();
    log_warning("a session could not be taken over", {{"session", id}, {"reason", taken.error().message}});
    co_return in_store_words(taken.error());
  }
  co_return taken;
}

net::Awaitable<Result<void>> SessionSharing::take_over(ServedModel& served, Tenant tenant, std::string id,
                                                       SessionClaim claim) {
  if (sessions_.leave({id})) {
    persister_.forget(id);
  } else {
    co_return Error{ErrorCode::conflict, "the session is in use here, and was in use at another node since: try again",
                    ""};
  }
  auto take = [store = store_, id, owner = tenant.lasting, claim, vocabulary = served.vocabulary,
               limits = SessionFileLimits{served.limits.vocabulary},
               now = clock_.unix_seconds()] { return store->take(id, owner, claim, vocabulary, limits, now); };
  Result<TakenSession> taken = co_await persister_.run(std::move(take));
  if (!taken) co_return taken.error();
  if (served.vocabulary != sessions_.vocabulary()) {
    co_return Error{ErrorCode::conflict, "the model was replaced by one with another vocabulary just now: try again",
                    ""};
  }
  const std::uint64_t lease = taken->lease;
  const SessionOwner owner{tenant.id, 0, tenant.lasting};
  // Its time begins again: a client asks for it now, and the clock of the node that had it is another one.
  if (auto back = sessions_.bring_back(owner, std::move(taken->image), clock_.now()); !back) co_return back.error();
  persister_.adopt(id, lease);
  taken_over_.insert(id);
  co_return Result<void>();
}

net::Awaitable<void> SessionSharing::bring_computed(ServedModel& served, Tenant tenant, std::string id) {
  if (taken_over_.erase(id) == 0) co_return;
  const auto session = sessions_.find(tenant.id, {id});
  if (session) co_await bring_kv(served, tenant, id, label_of(**session), (*session)->tokens);
}

// Without it the session is computed again: slower, and the same.
net::Awaitable<void> SessionSharing::bring_kv(ServedModel& served, Tenant tenant, std::string id, std::int32_t label,
                                              std::vector<Token> history) {
  if (std::cmp_less(history.size(), kWorthKeeping)) co_return;
  auto work = [store = store_, id, tenant, model = served.identity, history = std::move(history),
               &engine = served.engine, label]() -> Result<TokenCount> {
    auto copy = store->get_kv(id, tenant, model, history, engine.snapshot_limits());
    if (!copy) return copy.error();
    if (!*copy) return TokenCount{0};
    const auto tokens = static_cast<TokenCount>((*copy)->tokens.size());
    return engine.adopt_slot(SlotId{label}, tenant, std::move(**copy)) ? tokens : TokenCount{0};
  };
  const Result<TokenCount> brought = co_await kv_->run(std::move(work));
  if (!brought) {
    metrics_.kv_failed.add();
    log_warning("what was computed of a session could not be read",
                {{"session", id}, {"reason", brought.error().message}});
  } else if (*brought > 0) {
    metrics_.kv_brought.add();
    kept_tokens_.insert_or_assign(id, *brought);
  }
}

std::int32_t SessionSharing::label_of(const Session& session) {
  return kFirstLabel + static_cast<std::int32_t>(session.serial % kLabels);
}

void SessionSharing::keep_kv(ServedModel& served, const Tenant& tenant, const SessionId& id) {
  const auto session = sessions_.find(tenant.id, id);
  if (!session || saving_ >= kSavesMax) return;
  const TokenCount tokens = (*session)->length();
  const auto kept = kept_tokens_.find(id.text);
  const TokenCount before = kept != kept_tokens_.end() ? kept->second : 0;
  // A twentieth of a history is soon computed, and its KV may have hundreds of megabytes.
  if (tokens < kWorthKeeping || (tokens >= before && tokens - before < tokens / 20)) return;
  kept_tokens_.insert_or_assign(id.text, tokens);
  ++saving_;
  loop_.spawn(save_later(served, tenant, id.text), "session kv");
}

net::Awaitable<void> SessionSharing::save_later(ServedModel& served, Tenant tenant, std::string id) {
  // Not a ModelUse: the server may end while this waits, and then its model ends before it.
  ++served.users;
  const auto session = sessions_.find(tenant.id, {id});
  if (session) co_await save_kv(served, tenant, id, label_of(**session), (*session)->tokens);
  --served.users;
  --saving_;
}

net::Awaitable<void> SessionSharing::save_kv(ServedModel& served, Tenant tenant, std::string id, std::int32_t label,
                                             std::vector<Token> history) {
  auto work = [store = store_, id, tenant, model = served.identity, history = std::move(history),
               &engine = served.engine, label]() -> Result<bool> {
    const SlotCopy copy = engine.copy_of_slot(SlotId{label}, tenant);
    // Another session may have had the label meanwhile, or the history was taken back.
    if (!copy.kv || copy.tokens.size() > history.size()) return false;
    if (!std::ranges::equal(copy.tokens, std::span(history).first(copy.tokens.size()))) return false;
    if (auto put = store->put_kv(id, tenant, model, copy); !put) return put.error();
    return true;
  };
  net::OffloadTerms terms;
  terms.can_wait = kSavesWait;  // those that are read have a client that waits
  const Result<bool> saved = co_await kv_->run(std::move(work), std::move(terms));
  if (saved && *saved) {
    metrics_.kv_saved.add();
    // Another node may have ended it, and looked for its KV before.
    auto ask = [store = store_, id] { return store->has_ended(id); };
    const Result<bool> ended = co_await claims_->run(std::move(ask));
    if (!ended || !*ended) co_return;
    auto drop = [store = store_, id] { return store->drop_kv(id); };
    const Result<void> dropped = co_await kv_->run(std::move(drop));
    if (!dropped) metrics_.kv_failed.add();
    co_return;
  }
  kept_tokens_.erase(id);
  if (saved) co_return;
  metrics_.kv_failed.add();
  log_warning("what was computed of a session could not be kept", {{"session", id}, {"reason", saved.error().message}});
}

net::Awaitable<Result<void>> SessionSharing::takes_answers(SessionId id) {
  auto check = [store = store_, id = id.text] { return store->check_answers(id); };
  Result<void> takes = co_await persister_.run(std::move(check));
  co_return takes;
}

void SessionSharing::note_stays(const SessionId& id, const Error& why) {
  metrics_.not_moved.add();
  log_warning("an answer is not moved and goes on here", {{"session", id.text}, {"reason", why.message}});
}

net::Awaitable<Result<void>> SessionSharing::pass_on(ServedModel& served, RequestPtr asked, SessionId id,
                                                     MovedAnswer answer) {
  std::vector<Token> history = asked->prompt;
  history.insert(history.end(), answer.tokens.begin(), answer.tokens.end());
  auto put = [store = store_, id = id.text, answer = std::move(answer)] { return store->put_answer(id, answer); };
  Result<void> kept = co_await persister_.run(std::move(put));
  if (!kept) co_return kept;
  metrics_.moved.add();
  co_await save_kv(served, asked->tenant, id.text, asked->slot_label, std::move(history));
  co_return kept;
}

net::Awaitable<Result<std::optional<MovedAnswer>>> SessionSharing::moved_answer(ServedModel& served, Tenant tenant,
                                                                                SessionId id, std::string stream) {
  if (asking_ >= kAsksMax) {
    co_return Error{ErrorCode::overloaded, "too many streams are gone on with at once: retry later", ""};
  }
  ++asking_;
  auto get = [store = store_, id = id.text] { return store->get_answer(id); };
  Result<std::optional<MovedAnswer>> found = co_await persister_.run(std::move(get));
  --asking_;
  if (!found) {
    log_warning("it is not known whether an answer was moved here",
                {{"session", id.text}, {"reason", found.error().message}});
    co_return in_store_words(found.error());
  }
  if (!*found) co_return found;
  if ((*found)->stream != stream) co_return std::optional<MovedAnswer>();
  const auto session = sessions_.find(tenant.id, id);
  if (!session) co_return session.error();
  taken_over_.erase(id.text);  // its KV comes with that of the answer
  const SessionInput input(served.model, {(*session)->length(), sessions_.limits().tokens, (*session)->chat});
  auto before = input.before_answer();
  if (!before) co_return before.error();
  std::vector<Token> history = (*session)->tokens;
  history.insert(history.end(), before->tokens.begin(), before->tokens.end());
  history.insert(history.end(), (*found)->tokens.begin(), (*found)->tokens.end());
  const std::int32_t label = label_of(**session);
  co_await bring_kv(served, tenant, id.text, label, std::move(history));
  co_return found;
}

void SessionSharing::drop_answer(const SessionId& id) { loop_.spawn(drop_answer_of(id.text), "moved answer"); }

net::Awaitable<void> SessionSharing::drop_answer_of(std::string id) {
  auto drop = [store = store_, id] { return store->drop_answer(id); };
  const Result<void> dropped = co_await persister_.run(std::move(drop));
  if (!dropped)
    log_warning("a moved answer stays in the store", {{"session", id}, {"reason", dropped.error().message}});
}

void SessionSharing::let_go(const SessionId& id) {
  if (persister_.is_changing(id.text)) return;  // the node that asks takes it anyway
  if (sessions_.leave(id)) persister_.forget(id.text);
}

void SessionSharing::stop() {
  claims_.reset();
  kv_.reset();
}

void SessionSharing::sweep_later() {
  next_sweep_.expires_after(kSweepEvery);
  next_sweep_.async_wait([this](net::SystemError error) {
    if (!error) loop_.spawn(sweep(), "session store sweep");
  });
}

// Sessions whose node has died, and that no client asks for any more.
net::Awaitable<void> SessionSharing::sweep() {
  std::erase_if(taken_over_, [this](const auto& id) { return !sessions_.has({id}); });
  std::erase_if(kept_tokens_, [this](const auto& each) { return !sessions_.has({each.first}); });
  auto work = [store = store_, here = sessions_.ids()] { return store->sweep(here); };
  const Result<std::size_t> swept = co_await persister_.run(std::move(work));
  if (swept) metrics_.swept.add(*swept);
  sweep_later();
}

}  // namespace chasqui
