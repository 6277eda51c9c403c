#include "cache/snapshot_store.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/holding_log.h"

namespace chasqui {
namespace {

// Of a file's number; the bits above say which worker gave it.
constexpr int kCountBits = 48;

std::uint64_t giver(std::uint64_t number) { return number >> kCountBits; }

// Nodes keep fewer (engine/shared_snapshot_store.h); what is there beyond them is not looked for.
constexpr std::size_t kSharedMax = 16'384;
constexpr std::size_t kSharedTokensMax = std::size_t{1} << 26;  // 256 MiB

}  // namespace

SnapshotStore::SnapshotStore(const Limits& limits)
    : limits_(limits), last_file_(std::uint64_t{limits.worker} << kCountBits) {
  CHECK(limits.worker < limits.workers);
}

void SnapshotStore::found(FoundSnapshot file) {
  const bool shared = is_shared_file(file.number);
  if (shared && contains(file.number)) return;
  if (giver(file.number) == limits_.worker) last_file_ = std::max(last_file_, file.number);
  Entry entry;
  entry.own = !shared && giver(file.number) % limits_.workers == limits_.worker;
  const bool fits = shared ? shared_ < kSharedMax && shared_tokens_ + file.tokens.size() <= kSharedTokensMax
                           : in_folder() < limits_.files;
  if (!entry.own && (!file.usable || !fits)) return;
  entry.bytes = file.bytes;
  entry.state = file.usable ? State::there : State::foreign;
  if (file.usable) {
    entry.key = file.key;
    entry.length = static_cast<TokenCount>(file.tokens.size());
    shelves_of(file.number).try_emplace(file.key).first->second.insert(file.tokens, EntryId{file.number});
    if (limits_.holdings != nullptr && entry.own) entry.holding = limits_.holdings->hold(file.key, file.tokens);
  }
  add(file.number, std::move(entry));
  make_room(0, 0);  // the limits may have been higher
}

std::pair<TokenCount, EntryId> SnapshotStore::usable(const RadixTree::Match& found) const {
  return limits_.cut_anywhere ? std::pair{found.length, found.carrier} : std::pair{found.whole, found.whole_entry};
}

SnapshotStore::Match SnapshotStore::match_in(const Shelves& shelves, LastingKey key, std::span<const Token> tokens,
                                             TokenCount most) const {
  const auto shelf = shelves.find(key);
  if (shelf == shelves.end()) return {};
  const auto limit = static_cast<std::size_t>(std::max(most, 0));
  const auto [length, id] = usable(shelf->second.match(tokens.first(std::min(tokens.size(), limit))));
  if (length == 0) return {};
  const Entry& entry = entries_.at(id.value);
  const std::uint64_t head = snapshot_file_bytes(static_cast<std::size_t>(entry.length), 0);
  return {length, id.value, entry.length, entry.bytes - head};
}

bool SnapshotStore::covers(LastingKey key, std::span<const Token> tokens) const {
  const auto shelf = shelves_.find(key);
  if (shelf == shelves_.end()) return false;
  const RadixTree::Match found = shelf->second.match(tokens);
  if (std::cmp_equal(found.whole, tokens.size())) return true;
  return limits_.cut_anywhere && std::cmp_equal(found.length, tokens.size()) && found.ways == 1;
}

bool SnapshotStore::writes(std::uint64_t file, LastingKey key, std::span<const Token> tokens) const {
  const Entry& entry = entries_.at(file);
  return entry.state == State::writing && entry.key == key && std::ranges::equal(entry.tokens, tokens);
}

void SnapshotStore::touch(std::uint64_t file) {
  if (is_shared_file(file)) return;
  Entry& entry = entries_.at(file);
  order_.erase(entry.used);
  entry.used = ++last_used_;
  order_.emplace(entry.used, file);
}

void SnapshotStore::hold(std::uint64_t file) { ++entries_.at(file).holds; }

void SnapshotStore::release(std::uint64_t file) {
  int& holds = entries_.at(file).holds;
  CHECK(holds > 0);
  --holds;
}

std::optional<std::uint64_t> SnapshotStore::begin_write(LastingKey key, std::span<const Token> tokens,
                                                        std::uint64_t kv_bytes) {
  CHECK(!tokens.empty());
  const std::uint64_t bytes = snapshot_file_bytes(tokens.size(), kv_bytes);
  if (covers(key, tokens) || !make_room(bytes, 1)) return std::nullopt;
  const std::uint64_t file = ++last_file_;
  Entry entry;
  entry.state = State::writing;
  entry.key = key;
  entry.tokens.assign(tokens.begin(), tokens.end());
  entry.length = static_cast<TokenCount>(tokens.size());
  entry.bytes = bytes;
  add(file, std::move(entry));
  return file;
}

void SnapshotStore::written(std::uint64_t file) {
  Entry& entry = entries_.at(file);
  CHECK(entry.state == State::writing);
  entry.state = State::there;
  --writing_;
  RadixTree& tree = shelves_.try_emplace(entry.key).first->second;
  if (limits_.holdings != nullptr) entry.holding = limits_.holdings->hold(entry.key, entry.tokens);
  tree.insert(std::exchange(entry.tokens, {}), EntryId{file});
  touch(file);
  if (limits_.cut_anywhere) absorb_redundant(tree, EntryId{file});
}

void SnapshotStore::absorb_redundant(RadixTree& tree, EntryId by) {
  std::optional<EntryId> next = tree.entry_above(by);
  while (next) {
    const EntryId id = *next;
    next = tree.entry_above(id);
    if (tree.ways_below(id) == 1 && may_go(entries_.at(id.value))) remove(id.value);
  }
}

void SnapshotStore::forget(std::uint64_t file) { remove(file); }

bool SnapshotStore::make_room(std::uint64_t bytes, std::size_t files) {
  std::uint64_t bytes_left = bytes_;
  std::size_t files_left = in_folder();
  std::vector<std::uint64_t> going;
  for (auto next = order_.begin(); over(bytes_left + bytes, files_left + files); ++next) {
    if (next == order_.end()) return false;
    const Entry& entry = entries_.at(next->second);
    if (!may_go(entry)) continue;
    bytes_left -= room_of(entry);
    --files_left;
    going.push_back(next->second);
  }
  for (const std::uint64_t file : going) remove(file);
  evictions_ += going.size();
  return true;
}

void SnapshotStore::add(std::uint64_t file, Entry entry) {
  if (!is_shared_file(file)) {
    entry.used = ++last_used_;
    order_.emplace(entry.used, file);
  }
  bytes_ += room_of(entry);
  shared_ += is_shared_file(file) ? 1 : 0;
  shared_tokens_ += is_shared_file(file) ? static_cast<std::size_t>(entry.length) : 0;
  others_ += entry.own ? 0 : 1;
  foreign_ += entry.state == State::foreign ? 1 : 0;
  writing_ += entry.state == State::writing ? 1 : 0;
  CHECK(entries_.emplace(file, std::move(entry)).second, "a file is there twice");
}

void SnapshotStore::remove(std::uint64_t file) {
  const auto found = entries_.find(file);
  CHECK(found != entries_.end(), "a file is forgotten that is not known");
  const Entry& entry = found->second;
  if (entry.state == State::there) {
    Shelves& shelves = shelves_of(file);
    const auto shelf = shelves.find(entry.key);
    shelf->second.erase(EntryId{file});
    if (shelf->second.empty()) shelves.erase(shelf);
  }
  if (limits_.holdings != nullptr) limits_.holdings->drop(entry.holding);
  order_.erase(entry.used);
  shared_ -= is_shared_file(file) ? 1 : 0;
  shared_tokens_ -= is_shared_file(file) ? static_cast<std::size_t>(entry.length) : 0;
  bytes_ -= room_of(entry);
  others_ -= entry.own ? 0 : 1;
  foreign_ -= entry.state == State::foreign ? 1 : 0;
  writing_ -= entry.state == State::writing ? 1 : 0;
  entries_.erase(found);
  removals_.push_back(file);
}

std::vector<std::uint64_t> SnapshotStore::files_of(std::uint64_t tenant) const {
  std::vector<std::uint64_t> files;
  for (const auto& [file, entry] : entries_) {
    if (entry.state != State::foreign && entry.key.tenant == tenant) files.push_back(file);
  }
  return files;
}

void SnapshotStore::take_removals(std::vector<std::uint64_t>& files) {
  files.insert(files.end(), removals_.begin(), removals_.end());
  removals_.clear();
}

SnapshotStore::Stats SnapshotStore::stats() const {
  Stats stats;
  stats.files = entries_.size() - writing_ - others_;
  stats.bytes = bytes_;
  stats.evictions = evictions_;
  stats.foreign = foreign_;
  stats.shared = shared_;
  return stats;
}

bool SnapshotStore::consistent() const {
  std::uint64_t bytes = 0;
  std::size_t there = 0;
  std::size_t foreign = 0;
  std::size_t others = 0;
  std::size_t shared = 0;
  for (const auto& [file, entry] : entries_) {
    bytes += room_of(entry);
    others += entry.own ? 0 : 1;
    shared += is_shared_file(file) ? 1 : 0;
    const auto used = order_.find(entry.used);
    const bool ordered = used != order_.end() && used->second == file;
    if (ordered == is_shared_file(file) || entry.holds < 0) return false;
    foreign += entry.state == State::foreign ? 1 : 0;
    if (entry.state != State::there) continue;
    ++there;
    const Shelves& shelves = is_shared_file(file) ? shared_shelves_ : shelves_;
    const auto shelf = shelves.find(entry.key);
    if (shelf == shelves.end() || !shelf->second.contains(EntryId{file})) return false;
  }
  std::size_t shelved = 0;
  for (const Shelves* shelves : {&shelves_, &shared_shelves_}) {
    for (const auto& [key, tree] : *shelves) {
      if (tree.empty() || !tree.consistent()) return false;
      shelved += tree.size();
    }
  }
  if (there + foreign + writing_ != entries_.size()) return false;
  return bytes == bytes_ && foreign == foreign_ && others == others_ && shared == shared_ &&
         order_.size() + shared == entries_.size() && shelved == there;
}

}  // namespace chasqui
