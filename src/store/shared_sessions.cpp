#include "store/shared_sessions.h"

#include <algorithm>
#include <utility>

namespace chasqui::store {
namespace {

constexpr std::size_t kSweepMax = 100;

Error passed_on() {
  return {ErrorCode::conflict, "the session has gone on at another node, which does not know of this", ""};
}

}  // namespace

Result<SessionClaim> SharedSessions::claim(const std::string& id, std::uint64_t owner) {
  return parts_.claims->claim(id, owner);
}

Error SharedSessions::for_client(Error error) {
  if (error.code != ErrorCode::storage_full && error.code != ErrorCode::overloaded) error.code = ErrorCode::unavailable;
  return error;
}

std::vector<std::optional<Error>> SharedSessions::write(const std::vector<SessionChange>& changes) {
  Outcomes outcomes(changes.size());
  write_turns(changes, outcomes);
  std::optional<Error> down;  // where nothing answers, each end would wait for as long
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].image || changes[i].turn) continue;
    outcomes[i] = down ? down : end(changes[i]);
    if (outcomes[i] && outcomes[i]->code == ErrorCode::unavailable) down = outcomes[i];
  }
  return outcomes;
}

void SharedSessions::write_turns(const std::vector<SessionChange>& changes, Outcomes& outcomes) {
  std::vector<Draft> drafts;
  std::vector<StoredObject> objects;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const SessionChange& change = changes[i];
    if (!change.image && !change.turn) continue;
    Kept& kept = kept_.try_emplace(change.id, Kept{.lease = change.lease}).first->second;
    Draft draft{.change = i};
    auto object = draft_of(change, kept, draft);
    if (!object) {
      outcomes[i] = object.error();
      continue;
    }
    drafts.push_back(std::move(draft));
    objects.push_back(std::move(*object));
  }
  if (objects.empty()) return;
  const ObjectStore::Outcomes put = parts_.objects->put(objects);
  std::vector<Draft> stored;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (put[i]) {
      outcomes[drafts[i].change] = for_client(*put[i]);
      continue;
    }
    bytes_written_.add(objects[i].bytes.size());
    stored.push_back(std::move(drafts[i]));
  }
  commit(changes, stored, outcomes);
  drop_old(changes, stored, outcomes);
}

// Null: this node does not have the session by the lease of the change.
SharedSessions::Kept* SharedSessions::kept_by(const SessionChange& change) {
  const auto found = kept_.find(change.id);
  return found != kept_.end() && found->second.lease == change.lease ? &found->second : nullptr;
}

Result<StoredObject> SharedSessions::draft_of(const SessionChange& change, Kept& kept, Draft& draft) {
  if (kept.lease != change.lease) return passed_on();
  SessionObject object;
  std::vector<std::byte> bytes;
  if (change.image) {
    const bool other = change.image->vocabulary != VocabularyId{};
    bytes = write_session(*change.image, other ? change.image->vocabulary : config_.vocabulary);
    draft.place = TurnPlace{sum_in(bytes), bytes.size(), bytes.size()};
    draft.whole = true;
  } else {
    if (kept.last.lease == 0) return Error{ErrorCode::not_found, "there is nothing that the turn follows", ""};
    bytes = write_turn(*change.turn, kept.place);
    draft.place = kept.place;
    draft.place.end += bytes.size();
    object.follows = kept.last;
  }
  object.bytes = bytes;
  draft.number = {kept.lease, next_++, config_.writer};
  StoredObject out{object_name(session_folder(config_.root, change.id), draft.number), write_object(object)};
  kept.objects.insert(out.name);  // whatever the store says: it may have it
  return out;
}

LeaseStep SharedSessions::step_of(const SessionChange& change, ObjectNumber last) const {
  LeaseStep step{.id = change.id, .owner = change.owner, .lease = change.lease};
  if (last.lease != 0) step.last = object_name(session_folder(config_.root, change.id), last);
  step.ttl = change.ttl;
  return step;
}

void SharedSessions::commit(const std::vector<SessionChange>& changes, const std::vector<Draft>& drafts,
                            Outcomes& outcomes) {
  std::vector<LeaseStep> steps;
  for (const Draft& draft : drafts) {
    steps.push_back(step_of(changes[draft.change], draft.number));
    steps.back().fresh = changes[draft.change].made;
  }
  if (steps.empty()) return;
  const auto held = parts_.leases->commit(steps);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    Result<SessionLeases::Outcome> outcome = held[i];
    if (outcome && *outcome == SessionLeases::Outcome::lost) outcome = find_lost(steps[i]);
    outcomes[draft.change] = outcome ? settle(changes[draft.change], draft, *outcome) : outcome.error();
  }
}

std::optional<Error> SharedSessions::settle(const SessionChange& change, const Draft& draft,
                                            SessionLeases::Outcome outcome) {
  if (outcome == SessionLeases::Outcome::lost) {
    return Error{ErrorCode::unavailable, "the lease of the session is lost, again and again", ""};
  }
  Kept* const kept = kept_by(change);
  if (outcome != SessionLeases::Outcome::held || kept == nullptr) {
    // What comes late is not to be found by a node that knows of no lease.
    const std::string late = object_name(session_folder(config_.root, change.id), draft.number);
    (void)parts_.objects->remove(std::span(&late, 1));
    if (kept != nullptr) kept_.erase(change.id);
    return passed_on();
  }
  kept->last = draft.number;
  kept->place = draft.place;
  return std::nullopt;
}

// Redis has forgotten the lease. Another node may have had the session before that: then the store has objects of a
// newer lease than this one's.
Result<SessionLeases::Outcome> SharedSessions::find_lost(const LeaseStep& step) {
  const auto names = parts_.objects->list(session_folder(config_.root, step.id), kObjectsMax);
  if (!names) return for_client(names.error());
  for (const std::string& name : *names) {
    const auto number = number_of(name);
    if (number && number->lease > step.lease) return SessionLeases::Outcome::passed;
  }
  LeaseStep found = step;
  found.fresh = true;
  return parts_.leases->commit(std::span(&found, 1)).front();
}

void SharedSessions::drop_old(const std::vector<SessionChange>& changes, const std::vector<Draft>& drafts,
                              const Outcomes& outcomes) {
  std::vector<std::string> old;
  std::vector<std::set<std::string>*> of;
  for (const Draft& draft : drafts) {
    if (!draft.whole || outcomes[draft.change]) continue;
    const std::string& id = changes[draft.change].id;
    const std::string newest = object_name(session_folder(config_.root, id), draft.number);
    Kept* const kept = kept_by(changes[draft.change]);
    if (kept == nullptr) continue;
    std::set<std::string>& objects = kept->objects;
    for (const std::string& name : objects) {
      if (name >= newest) break;
      old.push_back(name);
      of.push_back(&objects);
    }
  }
  if (old.empty()) return;
  const ObjectStore::Outcomes removed = parts_.objects->remove(old);
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (!removed[i]) of[i]->erase(old[i]);
  }
}

std::optional<Error> SharedSessions::end(const SessionChange& change) {
  LeaseStep step = step_of(change, {});
  Result<SessionLeases::Outcome> outcome = parts_.leases->end(step);
  if (outcome && *outcome == SessionLeases::Outcome::lost) {
    outcome = find_lost(step);
    if (outcome && *outcome == SessionLeases::Outcome::held) outcome = parts_.leases->end(step);
  }
  if (!outcome) return outcome.error();
  if (*outcome == SessionLeases::Outcome::passed) {
    if (kept_by(change) != nullptr) kept_.erase(change.id);
    return passed_on();
  }
  if (auto removed = remove_objects(change.id); !removed) return removed.error();
  if (kept_by(change) != nullptr) kept_.erase(change.id);
  return std::nullopt;
}

// REQUIRES: Redis says that it has gone
Result<void> SharedSessions::remove_objects(const std::string& id) {
  if (const auto kept = kept_.find(id); kept != kept_.end()) {  // a list may be older
    const std::vector<std::string> known(kept->second.objects.begin(), kept->second.objects.end());
    for (const std::optional<Error>& error : parts_.objects->remove(known)) {
      if (error) return for_client(*error);
    }
  }
  for (const auto& folder_of : {&session_folder, &kv_folder, &answer_folder}) {
    if (auto removed = remove_folder(folder_of(config_.root, id)); !removed) return removed;
  }
  return parts_.leases->forget(id);
}

Result<void> SharedSessions::remove_folder(const std::string& folder, const std::string& before) {
  auto names = parts_.objects->list(folder, kObjectsMax);
  if (!names) return for_client(names.error());
  if (!before.empty()) std::erase_if(*names, [&](const std::string& name) { return name >= before; });
  for (const std::optional<Error>& error : parts_.objects->remove(*names)) {
    if (error) return for_client(*error);
  }
  return {};
}

Result<std::size_t> SharedSessions::sweep(const std::set<std::string>& here) {
  std::erase_if(kept_, [&](const auto& each) { return !here.contains(each.first); });
  const auto late = late_;
  for (const auto& [id, name] : late) {
    if (!drop_late_answer(id)) break;  // the next sweep tries again
  }
  const auto old = parts_.leases->end_old(kSweepMax);
  if (!old) return old.error();
  std::size_t swept = 0;
  std::optional<Error> first;
  for (const std::string& id : *old) {
    auto removed = remove_objects(id);
    if (!removed && !first) first = removed.error();
    if (!removed) continue;
    kept_.erase(id);
    ++swept;
  }
  if (first && swept == 0) return *first;
  return swept;
}

}  // namespace chasqui::store
