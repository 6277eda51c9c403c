// What a node finds when it takes a session, and what was computed of it.
#include <algorithm>
#include <ranges>
#include <utility>

#include "cache/snapshot_file.h"
#include "core/lasting_tenant.h"
#include "store/shared_sessions.h"

namespace chasqui::store {
namespace {

// No table holds a session that is so long.
constexpr std::size_t kBytesMax = std::size_t{1} << 29;
constexpr std::size_t kKvTries = 2;
constexpr std::size_t kPiecesAtOnce = 48;  // as many as there are turns, and some that were not acknowledged

Error no_session() { return {ErrorCode::not_found, "there is no such session", ""}; }

Error taken_now() { return {ErrorCode::conflict, "another node takes the session at this moment: try again", ""}; }

Error not_as_said(const std::string& why) {
  return {ErrorCode::unavailable, "the store does not have the session as it was acknowledged: " + why, ""};
}

std::uint32_t short_sum(std::span<const Token> tokens) {
  const Checksum sum = checksum(std::as_bytes(tokens));
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < sizeof out; ++i) out |= std::to_integer<std::uint32_t>(sum[i]) << 8 * i;
  return out;
}

}  // namespace

Result<TakenSession> SharedSessions::take(const std::string& id, std::uint64_t owner, const SessionClaim& claim,
                                          const VocabularyId& vocabulary, const SessionFileLimits& limits,
                                          std::int64_t now) {
  const bool lost = claim.kind == SessionClaim::Kind::lost;
  auto listed = parts_.objects->list(session_folder(config_.root, id), kObjectsMax);
  if (!listed) return for_client(listed.error());
  std::set<std::string> names(listed->begin(), listed->end());
  if (names.empty() && lost) return no_session();
  std::optional<ObjectNumber> last = number_of(claim.last);
  auto pieces = read_pieces(id, last, names);
  if (!pieces) return pieces.error();
  if (!last && !pieces->empty()) last = pieces->rbegin()->first;
  if (!last) return names.empty() ? no_session() : taken_now();  // all were removed since the list

  auto bytes = join(id, *last, *pieces);
  if (!bytes) return bytes.error();
  auto loaded = read_session(*bytes, vocabulary, limits);
  if (!loaded) return not_as_said(loaded.error().message);
  SessionImage& image = loaded->image;
  if (image.id.text != id || loaded->place.end != bytes->size()) return not_as_said("it is cut, or another one");
  if (image.owner != owner) return no_session();
  // The leases know the time; where they have forgotten it, what is written in the session decides.
  if (lost && image.expires() <= now) return no_session();
  if (loaded->foreign) {
    return Error{ErrorCode::conflict, "the session's tokens are of another vocabulary than this node's model has", ""};
  }
  Kept kept{.lease = claim.lease};
  for (const std::string& name : names) {
    const auto number = number_of(name);
    if (!number) continue;
    if (lost) kept.lease = std::max(kept.lease, number->lease + 1);
    kept.objects.insert(name);
  }
  if (lost) {
    const auto ttl = std::chrono::duration_cast<seconds>(image.settings.ttl).count();
    SessionChange found{.id = id, .lease = kept.lease, .owner = owner, .ttl = ttl};
    const auto restored = parts_.leases->restore(step_of(found, *last));
    if (!restored) return restored.error();
    if (!*restored) return taken_now();
  }
  const std::uint64_t lease = kept.lease;
  kept_.insert_or_assign(id, std::move(kept));
  return TakenSession{std::move(image), lease};
}

// All that may be of the session as `last` left it. A list may be older than what was acknowledged.
Result<SharedSessions::Pieces> SharedSessions::read_pieces(const std::string& id, std::optional<ObjectNumber> last,
                                                           std::set<std::string>& names) {
  if (last) names.insert(object_name(session_folder(config_.root, id), *last));
  std::vector<std::string> wanted;
  std::vector<ObjectNumber> numbers;
  // The newest of them: join() asks for others one by one.
  for (const std::string& name : std::views::reverse(names)) {
    const auto number = number_of(name);
    if (!number || (last && *number > *last)) continue;
    if (wanted.size() == kPiecesAtOnce) break;
    wanted.push_back(name);
    numbers.push_back(*number);
  }
  auto got = parts_.objects->get(wanted, kBytesMax);
  Pieces out;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i]) {
      out.emplace(numbers[i], std::move(*got[i]));
    } else if (!last && got[i].error().code != ErrorCode::not_found) {
      return for_client(
          got[i].error());  // it may be the newest; where that is known, join() asks again for what it needs
    }
  }
  return out;
}

Result<std::vector<std::byte>> SharedSessions::join(const std::string& id, ObjectNumber last, Pieces& pieces) {
  std::vector<std::span<const std::byte>> backwards;
  std::size_t size = 0;
  for (ObjectNumber each = last;;) {
    auto piece = pieces.find(each);
    if (piece == pieces.end()) {
      const std::string name = object_name(session_folder(config_.root, id), each);
      auto got = parts_.objects->get(std::span(&name, 1), kBytesMax);
      if (!got.front()) {
        const Error& error = got.front().error();
        return error.code == ErrorCode::not_found ? not_as_said("it has no " + name) : for_client(error);
      }
      piece = pieces.emplace(each, std::move(*got.front())).first;
    }
    const auto object = read_object(piece->second);
    if (!object) return not_as_said(object.error().message);
    backwards.push_back(object->bytes);
    size += object->bytes.size();
    if (object->is_whole()) break;
    if (object->follows >= each) return not_as_said("an object follows a later one");
    each = object->follows;
  }
  std::vector<std::byte> out;
  out.reserve(size);
  for (const std::span<const std::byte> bytes : std::views::reverse(backwards)) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

// By the name of no lease, which no one reads; it goes with the answers of the session.
Result<void> SharedSessions::check_answers(const std::string& id) {
  const StoredObject object{object_name(answer_folder(config_.root, id), {0, next_++, config_.writer}), {}};
  const auto put = parts_.objects->put(std::span(&object, 1));
  if (put.front()) return for_client(*put.front());
  return check_late(id, object.name);
}

// The node at which the session has ended may have looked for its answers before this one was put.
Result<void> SharedSessions::check_late(const std::string& id, const std::string& name) {
  late_.insert_or_assign(id, name);
  const auto ended = drop_late_answer(id);
  if (!ended) return ended.error();
  if (*ended) return Error{ErrorCode::conflict, "the session has ended at another node", ""};
  return {};
}

// Each time by a newer lease, or later: the last name is the newest.
Result<void> SharedSessions::put_answer(const std::string& id, const MovedAnswer& answer) {
  const auto kept = kept_.find(id);
  if (kept == kept_.end()) return Error{ErrorCode::conflict, "the session has gone on at another node", ""};
  const std::string folder = answer_folder(config_.root, id);
  const StoredObject object{object_name(folder, {kept->second.lease, next_++, config_.writer}),
                            write_moved_answer(answer)};
  const auto put = parts_.objects->put(std::span(&object, 1));
  if (put.front()) return for_client(*put.front());
  if (auto stays = check_late(id, object.name); !stays) return stays;
  (void)remove_folder(folder, object.name);  // what is left of another one is older
  return {};
}

Result<bool> SharedSessions::drop_late_answer(const std::string& id) {
  const auto ended = parts_.leases->has_ended(id);
  if (!ended) return for_client(ended.error());
  if (*ended) {
    const auto removed = parts_.objects->remove(std::span(&late_.at(id), 1));
    if (removed.front()) return for_client(*removed.front());
  }
  late_.erase(id);
  return *ended;
}

Result<std::optional<MovedAnswer>> SharedSessions::get_answer(const std::string& id) {
  const auto names = parts_.objects->list(answer_folder(config_.root, id), kObjectsMax);
  if (!names) return for_client(names.error());
  if (names->empty() || !number_of(names->back())) return std::optional<MovedAnswer>();  // a check comes before others
  auto got = parts_.objects->get(std::span(&names->back(), 1), kBytesMax);
  if (!got.front()) return for_client(got.front().error());
  auto answer = read_moved_answer(*got.front());
  if (!answer) return not_as_said(answer.error().message);
  return std::optional(std::move(*answer));
}

Result<void> SharedSessions::drop_answer(const std::string& id) {
  return remove_folder(answer_folder(config_.root, id));
}

// The names say how many tokens there are, and which.
Result<void> SharedSessions::put_kv(const std::string& id, const Tenant& tenant, const ModelIdentity& model,
                                    const SlotCopy& copy) {
  const auto lasting = lasting_tenant(tenant, false);
  if (!lasting || !copy.kv || copy.tokens.empty()) return {};
  const std::string folder = kv_folder(config_.root, id);
  const auto before = parts_.kv_objects->list(folder, kObjectsMax);
  if (!before) return before.error();
  StoredObject object{object_name(folder, {copy.tokens.size(), short_sum(copy.tokens), config_.writer}), {}};
  object.bytes = pack_snapshot(model, {*lasting, copy.adapters}, copy.tokens, *copy.kv);
  const auto put = parts_.kv_objects->put(std::span(&object, 1));
  if (put.front()) return *put.front();
  std::vector<std::string> old = *before;
  std::erase(old, object.name);
  (void)parts_.kv_objects->remove(old);  // the next one tries again
  return {};
}

Result<void> SharedSessions::drop_kv(const std::string& id) {
  const auto names = parts_.kv_objects->list(kv_folder(config_.root, id), kObjectsMax);
  if (!names) return names.error();
  for (const std::optional<Error>& error : parts_.kv_objects->remove(*names)) {
    if (error) return *error;
  }
  return {};
}

Result<std::optional<SlotCopy>> SharedSessions::get_kv(const std::string& id, const Tenant& tenant,
                                                       const ModelIdentity& model, std::span<const Token> history,
                                                       const SnapshotLimits& limits) {
  const auto lasting = lasting_tenant(tenant, false);
  if (!lasting) return std::optional<SlotCopy>();
  const auto names = parts_.kv_objects->list(kv_folder(config_.root, id), kObjectsMax);
  if (!names) return names.error();
  std::size_t tries = 0;
  for (const std::string& name : std::views::reverse(*names)) {
    const auto number = number_of(name);
    if (!number || number->lease > history.size()) continue;
    const auto beginning = history.first(static_cast<std::size_t>(number->lease));
    if (number->number != short_sum(beginning) || ++tries > kKvTries) continue;
    const auto most = snapshot_file_bytes(beginning.size(), limits.kv_bytes);
    auto got = parts_.kv_objects->get(std::span(&name, 1), static_cast<std::size_t>(most));
    if (!got.front()) continue;
    auto loaded = unpack_snapshot(*got.front(), model, limits);
    if (!loaded || loaded->head.key.tenant != *lasting || !std::ranges::equal(loaded->head.tokens, beginning)) continue;
    return std::optional(SlotCopy{0, loaded->head.key.adapter, std::move(loaded->head.tokens), std::move(loaded->kv)});
  }
  return std::optional<SlotCopy>();
}

}  // namespace chasqui::store
