#include "engine/session_table.h"

#include <algorithm>
#include <utility>

#include "base/random_id.h"

namespace chasqui {
namespace {

Error no_such_session() { return {ErrorCode::not_found, "there is no such session", ""}; }

}  // namespace

std::string_view name(Session::State state) {
  switch (state) {
    case Session::State::idle: return "idle";
    case Session::State::preparing: return "preparing";
    case Session::State::generating: return "generating";
  }
  return "idle";
}

SessionUse::SessionUse(SessionUse&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)), session_(other.session_) {}

SessionUse::~SessionUse() {
  if (table_ != nullptr) table_->rest(*session_);
}

Result<void> SessionUse::still_wanted() const {
  if (session_->ended) return no_such_session();
  if (session_->cancelled) return Error{ErrorCode::conflict, "the generation was cancelled before it began", ""};
  return {};
}

Result<const Session*> SessionUse::append(SessionDelta delta, TimePoint now) {
  CHECK(table_ != nullptr, "a session's use was spent before");
  if (session_->ended) return no_such_session();
  if (auto room = table_->check_room(session_->tenant, session_, delta, table_->limits_.tokens); !room)
    return room.error();
  table_->extend(*session_, std::move(delta));
  session_->last_used = now;
  table_->changed(*session_);
  std::exchange(table_, nullptr)->rest(*session_);
  return session_;
}

void SessionUse::begin(RequestId request, SessionDelta before_answer) {
  CHECK(table_ != nullptr && still_wanted(), "a generation begins in a session that is not held for it");
  session_->state = Session::State::generating;
  session_->request = request;
  session_->before_answer = std::move(before_answer);
  session_->answer = table_->answer_text(*session_);
  session_->moves = false;
  session_->stopped.reset();
  std::exchange(table_, nullptr)->generating_.emplace(request, session_);
}

Result<const Session*> SessionTable::create(const SessionOwner& owner, const SessionSettings& settings,
                                            SessionDelta begin, TimePoint now) {
  if (auto place = check_place(owner); !place) return place.error();
  if (auto room = check_room(owner.tenant, nullptr, begin, limits_.tokens); !room) return room.error();
  Session& added = add({random_id("sess_")}, owner, settings, 0, std::move(begin), now);
  metrics_.created.add();
  changed(added);
  return &added;
}

Result<void> SessionTable::bring_back(const SessionOwner& owner, SessionImage image, TimePoint last_used) {
  if (sessions_.contains(image.id.text)) return Error{ErrorCode::conflict, "there is a session with this id", ""};
  if (sessions_.size() >= limits_.sessions) {
    return Error{ErrorCode::overloaded, "there are as many sessions as there may be", ""};
  }
  SessionDelta history{std::move(image.tokens), std::move(image.chat)};
  // Its last answer may have filled the slot.
  if (auto room = check_room(owner.tenant, nullptr, history, limits_.tokens + 1); !room) return room.error();
  add(std::move(image.id), owner, image.settings, 0, std::move(history), last_used);
  return {};
}

void SessionTable::changed(Session& session) {
  ++session.changes;
  if (journal_ != nullptr && !session.ended) journal_->changed(session);
}

Session& SessionTable::add(SessionId id, const SessionOwner& owner, const SessionSettings& settings, std::uint64_t pin,
                           SessionDelta begin, TimePoint now) {
  auto session = std::make_unique<Session>();
  session->id = std::move(id);
  session->tenant = owner.tenant;
  session->owner = owner.lasting;
  session->settings = settings;
  session->last_used = now;
  Session& added = *session;
  added.serial = ++last_serial_;
  added.vocabulary = vocabulary_;
  added.pin = pin != 0 ? pin : added.serial;
  ++pins_[added.pin];
  const bool fresh = sessions_.emplace(added.id.text, std::move(session)).second;
  CHECK(fresh, "two sessions with one id");
  of_tenant_[owner.tenant].emplace(added.serial, &added);
  start_expiring(added);
  metrics_.sessions.add(1);
  extend(added, std::move(begin));
  return added;
}

void SessionTable::use_model(const SessionLimits& limits, const Tokenizer& tokenizer, const Checksum& vocabulary) {
  limits_ = limits;
  tokenizer_ = &tokenizer;
  vocabulary_ = vocabulary;
}

Result<void> SessionTable::check_vocabulary(const Session& session) const {
  if (session.vocabulary == vocabulary_) return {};
  return Error{ErrorCode::conflict,
               "the model was replaced by one with another vocabulary, in which the session's tokens mean something "
               "else: end it and begin a new one",
               ""};
}

Result<Session*> SessionTable::visible(std::uint32_t tenant, const SessionId& id) const {
  const auto found = sessions_.find(id.text);
  if (found == sessions_.end() || found->second->tenant != tenant || found->second->ended) return no_such_session();
  return found->second.get();
}

Result<const Session*> SessionTable::find(std::uint32_t tenant, const SessionId& id) const {
  const auto session = visible(tenant, id);
  if (!session) return session.error();
  return static_cast<const Session*>(*session);
}

std::vector<const Session*> SessionTable::list(std::uint32_t tenant, std::size_t most, const Session* after) const {
  std::vector<const Session*> out;
  const auto found = of_tenant_.find(tenant);
  if (found == of_tenant_.end()) return out;
  auto each = after != nullptr ? found->second.upper_bound(after->serial) : found->second.begin();
  for (; each != found->second.end() && out.size() < most; ++each) {
    if (!each->second->ended) out.push_back(each->second);
  }
  return out;
}

Result<SessionUse> SessionTable::take(std::uint32_t tenant, const SessionId& id, TimePoint now) {
  const auto session = visible(tenant, id);
  if (!session) return session.error();
  if ((*session)->state != Session::State::idle) {
    const bool generating = (*session)->state == Session::State::generating;
    return Error{ErrorCode::conflict,
                 generating ? "the session is generating: wait for the end, cancel it, or fork the session"
                            : "another command is using the session: wait for its answer",
                 ""};
  }
  if (auto reads = check_vocabulary(**session); !reads) return reads.error();
  stop_expiring(**session);
  (*session)->state = Session::State::preparing;
  (*session)->tokenizer = tokenizer_;
  (*session)->last_used = now;
  return SessionUse(*this, **session);
}

Result<const Session*> SessionTable::fork(const SessionOwner& owner, const SessionId& id, std::int64_t created,
                                          TimePoint now) {
  const auto parent = visible(owner.tenant, id);
  if (!parent) return parent.error();
  if (auto reads = check_vocabulary(**parent); !reads) return reads.error();
  if (auto place = check_place(owner); !place) return place.error();
  if ((*parent)->chat) {
    if (auto room = check_files(owner.tenant, 0, *(*parent)->chat); !room) return room.error();
  }
  touch(**parent, now);
  SessionSettings settings = (*parent)->settings;
  settings.created = created;
  Session& added =
      add({random_id("sess_")}, owner, settings, (*parent)->pin, {(*parent)->tokens, (*parent)->chat}, now);
  metrics_.created.add();
  changed(added);
  return &added;
}

Result<std::optional<RequestId>> SessionTable::cancel(std::uint32_t tenant, const SessionId& id, TimePoint now) {
  const auto session = visible(tenant, id);
  if (!session) return session.error();
  touch(**session, now);
  (*session)->cancelled = (*session)->state != Session::State::idle;
  if ((*session)->state != Session::State::generating) return std::optional<RequestId>();
  return std::optional((*session)->request);
}

Result<std::optional<RequestId>> SessionTable::end(std::uint32_t tenant, const SessionId& id) {
  const auto session = visible(tenant, id);
  if (!session) return session.error();
  if (journal_ != nullptr) journal_->removed(id);
  if ((*session)->state == Session::State::idle) {
    remove(**session);
    return std::optional<RequestId>();
  }
  (*session)->ended = true;
  if ((*session)->state != Session::State::generating) return std::optional<RequestId>();
  return std::optional((*session)->request);
}

bool SessionTable::leave(const SessionId& id) {
  const auto found = sessions_.find(id.text);
  if (found == sessions_.end()) return true;
  if (found->second->state != Session::State::idle) return false;
  remove(*found->second);
  return true;
}

std::set<std::string> SessionTable::ids() const {
  std::set<std::string> out;
  for (const auto& [id, session] : sessions_) out.insert(id);
  return out;
}

std::vector<std::pair<RequestId, SessionId>> SessionTable::generating() const {
  std::vector<std::pair<RequestId, SessionId>> out;
  for (const auto& [request, session] : generating_) out.emplace_back(request, session->id);
  return out;
}

// Nothing in a session of plain text.
std::unique_ptr<AnswerText> SessionTable::answer_text(const Session& session) const {
  if (!session.before_answer.chat) return nullptr;
  std::vector<Token> history = session.tokens;
  history.insert(history.end(), session.before_answer.tokens.begin(), session.before_answer.tokens.end());
  return std::make_unique<AnswerText>(*session.tokenizer, history);
}

void SessionTable::said(const Event& event) {
  if (generating_.empty() || event.tokens == 0) return;
  const auto found = generating_.find(event.request);
  if (found != generating_.end() && found->second->answer) found->second->answer->push(event.token);
}

void SessionTable::finished(const Event& event, TimePoint now) {
  const auto found = generating_.find(event.request);
  if (found == generating_.end()) return;
  Session& session = *found->second;
  generating_.erase(found);
  session.last_used = now;
  if (session.moves && !session.cancelled && !session.ended && event.reason == FinishReason::cancelled) {
    session.state = Session::State::preparing;
    session.stopped = event.generated;
    return;
  }
  take_answer(session, event.generated);
  rest(session);
}

// Cancelled before the first token: as if it had never been asked.
void SessionTable::take_answer(Session& session, const std::vector<Token>& generated) {
  if (generated.empty()) return;
  extend(session, std::exchange(session.before_answer, {}));
  add_answer(session, generated);
  changed(session);
}

void SessionTable::take_back(const SessionMark& before) {
  const auto found = sessions_.find(before.id.text);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  if (session.serial != before.serial) return;  // it was another node's meanwhile, and is another one here
  if (session.state != Session::State::idle || session.changes != before.changes + 1) return;
  metrics_.tokens.add(static_cast<std::int64_t>(before.tokens) - session.length());
  session.tokens.resize(before.tokens);
  set_chat(session, before.chat);
  changed(session);
}

void SessionTable::expire(TimePoint now) {
  while (!idle_.empty() && idle_.begin()->first <= now) {
    Session& session = *idle_.begin()->second;
    if (journal_ != nullptr) journal_->removed(session.id);
    remove(session);
    metrics_.expired.add();
  }
}

void SessionTable::set_chat(Session& session, ChatHistoryPtr chat) {
  const auto before = static_cast<std::int64_t>(session.file_bytes());
  session.chat = std::move(chat);
  metrics_.file_bytes.add(static_cast<std::int64_t>(session.file_bytes()) - before);
}

void SessionTable::extend(Session& session, SessionDelta delta) {
  session.tokens.insert(session.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  set_chat(session, std::move(delta.chat));
  metrics_.tokens.add(static_cast<std::int64_t>(delta.tokens.size()));
}

void SessionTable::add_answer(Session& session, const std::vector<Token>& generated) {
  session.tokens.insert(session.tokens.end(), generated.begin(), generated.end());
  metrics_.tokens.add(static_cast<std::int64_t>(generated.size()));
  if (!session.chat) return;
  const Token last = generated.back();
  const bool ended = session.tokenizer->is_end_of_generation(last);
  const std::string text = session.answer->take(std::span(generated).first(generated.size() - (ended ? 1 : 0)));
  const std::string_view end_text = ended ? session.tokenizer->special_piece(last) : std::string_view();
  session.chat = std::make_shared<const ChatHistory>(with_answer(*session.chat, text, end_text));
}

void SessionTable::touch(Session& session, TimePoint now) {
  const bool idle = session.state == Session::State::idle;
  if (idle) stop_expiring(session);
  session.last_used = now;
  if (idle) start_expiring(session);
}

void SessionTable::rest(Session& session) {
  session.state = Session::State::idle;
  session.request = {};
  session.answer.reset();
  session.tokenizer = nullptr;
  session.before_answer = {};
  session.cancelled = false;
  session.moves = false;
  session.stopped.reset();
  start_expiring(session);
  if (session.ended) remove(session);
}

void SessionTable::start_expiring(Session& session) {
  idle_.emplace(session.last_used + session.settings.ttl, &session);
}

void SessionTable::stop_expiring(Session& session) {
  idle_.erase({session.last_used + session.settings.ttl, &session});
}

void SessionTable::remove(Session& session) {
  stop_expiring(session);
  const auto owner = of_tenant_.find(session.tenant);
  owner->second.erase(session.serial);
  if (owner->second.empty()) of_tenant_.erase(owner);
  metrics_.sessions.add(-1);
  metrics_.tokens.add(-static_cast<std::int64_t>(session.tokens.size()));
  metrics_.file_bytes.add(-static_cast<std::int64_t>(session.file_bytes()));
  release(session.pin);
  const auto found = sessions_.find(session.id.text);
  std::shared_ptr<const Session> gone(std::move(found->second));
  sessions_.erase(found);
  free_later_(std::move(gone));
}

void SessionTable::release(std::uint64_t pin) {
  const auto found = pins_.find(pin);
  if (--found->second > 0) return;
  pins_.erase(found);
  unpinned_(pin);
}

bool SessionTable::consistent() const {
  std::size_t generating = 0;
  std::size_t idle = 0;
  std::size_t owned = 0;
  std::int64_t tokens = 0;
  std::size_t file_bytes = 0;
  std::unordered_map<std::uint64_t, std::size_t> pins;
  for (const auto& [tenant, owned_here] : of_tenant_) owned += owned_here.size();
  for (const auto& [id, session] : sessions_) {
    if (id != session->id.text || (session->ended && session->state == Session::State::idle)) return false;
    tokens += session->length();
    file_bytes += session->file_bytes();
    ++pins[session->pin];
    const bool expires = idle_.contains({session->last_used + session->settings.ttl, session.get()});
    if (expires != (session->state == Session::State::idle)) return false;
    idle += expires ? 1 : 0;
    if (session->state != Session::State::generating) continue;
    ++generating;
    const auto found = generating_.find(session->request);
    if (found == generating_.end() || found->second != session.get()) return false;
  }
  if (idle != idle_.size() || owned != sessions_.size() || pins != pins_) return false;
  return generating == generating_.size() && tokens == metrics_.tokens.value() &&
         static_cast<std::int64_t>(sessions_.size()) == metrics_.sessions.value() &&
         static_cast<std::int64_t>(file_bytes) == metrics_.file_bytes.value() && sessions_.size() <= limits_.sessions;
}

}  // namespace chasqui
