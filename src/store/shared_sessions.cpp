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
  std::vector<Draft> drafts;
  std::vector<StoredObject> objects;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const SessionChange& change = changes[i];
    if (!change.image && !change.turn) {
      outcomes[i] = end(change);
      continue;
    }
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
  if (objects.empty()) return outcomes;
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
  return outcomes;
}

Result<StoredObject> SharedSessions::draft_of(const SessionChange& change, Kept& kept, Draft& draft) const {
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
  draft.number = {kept.lease, kept.next++, config_.writer};
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
    const SessionChange& change = changes[draft.change];
    steps.push_back(step_of(change, draft.number));
    // Ids are never made twice, so no other node has had it yet.
    steps.back().fresh = change.lease == 1 && kept_.at(change.id).last.lease == 0;
  }
  if (steps.empty()) return;
  const auto held = parts_.leases->commit(steps);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    Result<SessionLeases::Outcome> outcome = held ? Result((*held)[i]) : held.error();
    if (outcome && *outcome == SessionLeases::Outcome::lost) outcome = find_lost(steps[i]);
    outcomes[draft.change] = outcome ? settle(changes[draft.change], draft, *outcome) : outcome.error();
  }
}

std::optional<Error> SharedSessions::settle(const SessionChange& change, const Draft& draft,
                                            SessionLeases::Outcome outcome) {
  if (outcome == SessionLeases::Outcome::lost) {
    return Error{ErrorCode::unavailable, "the lease of the session is lost, again and again", ""};
  }
  if (outcome != SessionLeases::Outcome::held) {
    kept_.erase(change.id);
    return passed_on();
  }
  Kept& kept = kept_.at(change.id);
  kept.last = draft.number;
  kept.place = draft.place;
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
  const auto again = parts_.leases->commit(std::span(&found, 1));
  if (!again) return again.error();
  return again->front();
}

void SharedSessions::drop_old(const std::vector<SessionChange>& changes, const std::vector<Draft>& drafts,
                              const Outcomes& outcomes) {
  std::vector<std::string> old;
  std::vector<std::set<std::string>*> of;
  for (const Draft& draft : drafts) {
    if (!draft.whole || outcomes[draft.change]) continue;
    const std::string& id = changes[draft.change].id;
    const std::string newest = object_name(session_folder(config_.root, id), draft.number);
    std::set<std::string>& objects = kept_.at(id).objects;
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
  if (*outcome == SessionLeases::Outcome::held) {
    if (auto removed = remove_objects(change.id); !removed) return removed.error();
  }
  kept_.erase(change.id);  // another node's, where it was passed on: no matter of this one's
  return std::nullopt;
}

// REQUIRES: Redis says that it has gone
Result<void> SharedSessions::remove_objects(const std::string& id) {
  for (const auto& folder_of : {&session_folder, &kv_folder, &answer_folder}) {
    if (auto removed = remove_folder(folder_of(config_.root, id)); !removed) return removed;
  }
  return parts_.leases->forget(id);
}

// `but`: this one object stays.
Result<void> SharedSessions::remove_folder(const std::string& folder, const std::string& but) {
  auto names = parts_.objects->list(folder, kObjectsMax);
  if (!names) return for_client(names.error());
  std::erase(*names, but);
  for (const std::optional<Error>& error : parts_.objects->remove(*names)) {
    if (error) return for_client(*error);
  }
  return {};
}

Result<std::size_t> SharedSessions::sweep() {
  const auto old = parts_.leases->end_old(kSweepMax);
  if (!old) return old.error();
  for (const std::string& id : *old) {
    if (auto removed = remove_objects(id); !removed) return removed.error();
    kept_.erase(id);
  }
  return old->size();
}

}  // namespace chasqui::store
