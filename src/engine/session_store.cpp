#include "engine/session_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>

#include <unistd.h>

#include "base/ascii.h"
#include "base/log.h"
#include "cache/whole_file.h"

namespace chasqui {
namespace {

constexpr std::string_view kSuffix = ".session";
// No table holds one that is so long.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 29;
// A file may have so many bytes more than twice what it says.
constexpr std::size_t kRepeatedMax = 64 * 1024;

std::string name_of(const std::string& id) { return id + std::string(kSuffix); }

// The id of a session, as the server makes them, or nothing.
std::optional<std::string> id_of(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const std::string_view id = name.substr(0, name.size() - suffix.size());
  const auto plain = [](char c) { return is_ascii_word_or("_-", c); };
  if (id.empty() || !std::ranges::all_of(id, plain)) return std::nullopt;
  return std::string(id);
}

}  // namespace

Result<std::unique_ptr<SessionStore>> SessionStore::open(const std::string& path, const VocabularyId& vocabulary) {
  auto folder = PrivateFolder::open(path, "sessions", "session_dir");
  if (!folder) return folder.error();
  return std::unique_ptr<SessionStore>(new SessionStore(std::move(*folder), vocabulary));
}

SessionStore::Found SessionStore::load(const SessionFileLimits& limits, std::int64_t now) {
  Found found;
  for (const std::string& name : folder_.names()) {
    if (id_of(name, std::string(kSuffix) + kPartSuffix)) ::unlinkat(folder_.get(), name.c_str(), 0);
    if (const auto id = id_of(name, kSuffix)) load_one(name, *id, limits, now, found);
  }
  std::ranges::sort(found.sessions, {}, [](const SessionImage& image) {
    return std::tie(image.settings.created, image.serial, image.id.text);
  });
  return found;
}

void SessionStore::load_one(const std::string& name, const std::string& id, const SessionFileLimits& limits,
                            std::int64_t now, Found& found) {
  const auto bytes = read_whole(folder_.get(), name, kBytesMax);
  Result<LoadedSession> loaded =
      bytes ? read_session(*bytes, vocabulary_, limits) : Result<LoadedSession>(bytes.error());
  if (loaded && loaded->image.id.text != id) {
    loaded = Error{ErrorCode::invalid_request, "it is the file of another session", ""};
  }
  if (loaded && loaded->image.expires() <= now) {
    ++found.expired;
    ::unlinkat(folder_.get(), name.c_str(), 0);
  } else if (loaded && !loaded->foreign) {
    if (bytes->size() > loaded->place.end) {
      ++found.cut;
      log_warning("the last write of a session had not ended: the session is what it was before",
                  {{"file", name}, {"bytes", bytes->size() - loaded->place.end}});
    }
    if (loaded->place.has_files) {
      places_.insert_or_assign(id, loaded->place);
    } else if (auto written = write_base(id, loaded->image); !written) {  // no turn may be written behind it as it is
      log_warning("a session's file of an older version cannot be written anew",
                  {{"file", name}, {"reason", written.error().message}});
      ++found.foreign;
      return;
    }
    found.sessions.push_back(std::move(loaded->image));
  } else if (loaded || loaded.error().code == ErrorCode::conflict) {
    ++found.foreign;
  } else {
    ++found.damaged;
    log_warning("a session's file cannot be used", {{"file", name}, {"reason", loaded.error().message}});
    if (loaded.error().code != ErrorCode::invalid_request) return;  // another time, perhaps
    ::renameat(folder_.get(), name.c_str(), folder_.get(), (name + ".damaged").c_str());
  }
}

std::vector<std::optional<Error>> SessionStore::write(const std::vector<SessionChange>& changes) {
  std::vector<std::optional<Error>> out(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (auto written = write_one(changes[i]); !written) out[i] = written.error();
  }
  if (!names_changed_) return out;
  // Once for all of them. A turn is of no use either in a file that may not have its name.
  if (auto synced = sync_folder(folder_.get()); !synced) {
    for (std::optional<Error>& error : out) error = synced.error();
    return out;
  }
  names_changed_ = false;
  return out;
}

Result<void> SessionStore::write_one(const SessionChange& change) {
  if (change.image) return write_base(change.id, *change.image);
  if (change.turn) return write_behind(change.id, *change.turn);
  places_.erase(change.id);
  names_changed_ = true;
  if (::unlinkat(folder_.get(), name_of(change.id).c_str(), 0) == 0 || errno == ENOENT) return {};
  return Error{ErrorCode::unavailable, std::string("cannot remove: ") + std::strerror(errno), ""};
}

Result<void> SessionStore::write_base(const std::string& id, const SessionImage& image) {
  const VocabularyId& vocabulary = image.vocabulary == VocabularyId{} ? vocabulary_ : image.vocabulary;
  const std::vector<std::byte> bytes = write_session(image, vocabulary);
  if (auto written = write_whole(folder_.get(), name_of(id), {bytes}); !written) return written;
  names_changed_ = true;
  bytes_written_.add(bytes.size());
  places_.insert_or_assign(id, TurnPlace{sum_in(bytes), bytes.size(), bytes.size()});
  return {};
}

Result<void> SessionStore::write_behind(const std::string& id, const SessionTurn& turn) {
  const auto place = places_.find(id);
  if (place == places_.end()) return Error{ErrorCode::not_found, "there is no file that the turn follows on", ""};
  const std::vector<std::byte> bytes = write_turn(turn, place->second);
  if (auto written = append_at(folder_.get(), name_of(id), place->second.end, bytes); !written) {
    const bool is_gone =
        written.error().code == ErrorCode::not_found || written.error().code == ErrorCode::invalid_request;
    if (!is_gone) return written;
    places_.erase(place);
    return Error{ErrorCode::not_found, "its file is not what was written: " + written.error().message, ""};
  }
  bytes_written_.add(bytes.size());
  place->second.end += bytes.size();
  const std::size_t texts = turn.chat ? turn.chat->bytes + turn.chat->file_bytes : 0;
  const std::size_t says = sizeof(Token) * (turn.kept + turn.tokens.size()) + texts;
  if (place->second.end > 2 * std::max(says, place->second.base_bytes) + kRepeatedMax) shorten(id);
  return {};
}

// What is on disk is right as it is, so nothing is lost when this fails.
void SessionStore::shorten(const std::string& id) {
  const auto bytes = read_whole(folder_.get(), name_of(id), kBytesMax);
  if (!bytes) return;
  const auto vocabulary = vocabulary_in(*bytes);  // a model that was replaced may have had another one
  if (!vocabulary) return;
  auto loaded = read_session(*bytes, *vocabulary, {std::numeric_limits<TokenCount>::max()});
  if (!loaded || loaded->place.end != bytes->size()) return;
  loaded->image.vocabulary = *vocabulary;
  if (auto written = write_base(id, loaded->image); !written) {
    log_warning("a session's file could not be shortened", {{"reason", written.error().message}});
  }
}

}  // namespace chasqui
