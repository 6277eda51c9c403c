#include "store/shared_snapshots.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

namespace chasqui::store {
namespace {

constexpr std::string_view kHeads = "snapshot_heads";
constexpr std::string_view kSnapshots = "snapshots";
// More than nodes leave there, each of which may be writing some.
constexpr std::size_t kListedMax = 4 * SharedSnapshotStore::kSnapshotsMax;
constexpr std::size_t kRemovedAtOnce = 256;
// Of a head: 16 million tokens.
constexpr std::size_t kHeadMax = std::size_t{64} << 20;

Error under_another_name() { return {ErrorCode::invalid_request, "its name is that of another one", ""}; }

// What a name says, in the order in which it says it.
struct Named {
  std::uint64_t time = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tenant = 0;
  std::uint64_t model = 0;
  Checksum content{};
};

std::uint64_t number_in(std::span<const std::byte, 8> bytes) {
  std::uint64_t out = 0;
  for (const std::byte each : bytes) out = out << 8 | std::to_integer<std::uint64_t>(each);
  return out;
}

void put_number_in(std::span<std::byte, 8> bytes, std::uint64_t number) {
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(number >> (56 - 8 * i));
}

// Two numbers, as an array's halves.
std::array<std::uint64_t, 2> halves_of(const Checksum& sum) {
  const std::span<const std::byte, 16> bytes(sum);
  return {number_in(bytes.first<8>()), number_in(bytes.last<8>())};
}

std::string name_of(const Named& named) {
  const auto [high, low] = halves_of(named.content);
  std::array<char, 96> out{};
  const int length =
      std::snprintf(out.data(), out.size(), "%012llx-%012llx-%016llx-%016llx-%016llx%016llx",
                    static_cast<unsigned long long>(named.time), static_cast<unsigned long long>(named.bytes),
                    static_cast<unsigned long long>(named.tenant), static_cast<unsigned long long>(named.model),
                    static_cast<unsigned long long>(high), static_cast<unsigned long long>(low));
  return {out.data(), static_cast<std::size_t>(length)};
}

bool take_digits(std::string_view& text, std::size_t digits, std::uint64_t& out) {
  if (text.size() < digits) return false;
  const char* const end = text.data() + digits;
  const auto [last, failed] = std::from_chars(text.data(), end, out, 16);
  text.remove_prefix(digits);
  return failed == std::errc{} && last == end;
}

bool take_dash(std::string_view& text) {
  const bool there = text.starts_with('-');
  if (there) text.remove_prefix(1);
  return there;
}

// Only what name_of() writes.
std::optional<Named> read_name(std::string_view name) {
  Named out;
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::string_view rest = name;
  const bool good = take_digits(rest, 12, out.time) && take_dash(rest) && take_digits(rest, 12, out.bytes) &&
                    take_dash(rest) && take_digits(rest, 16, out.tenant) && take_dash(rest) &&
                    take_digits(rest, 16, out.model) && take_dash(rest) && take_digits(rest, 16, high) &&
                    take_digits(rest, 16, low) && rest.empty();
  if (!good) return std::nullopt;
  put_number_in(std::span(out.content).first<8>(), high);
  put_number_in(std::span(out.content).last<8>(), low);
  if (name_of(out) != name) return std::nullopt;
  return out;
}

std::string in_folder(std::string_view folder, std::string_view name) {
  return std::string(folder) + '/' + std::string(name);
}

std::uint64_t short_model(const ModelIdentity& identity) {
  Checksummer sum;
  sum.add(identity.weights);
  sum.add(identity.context);
  return halves_of(sum.result())[0];
}

}  // namespace

SharedSnapshots::SharedSnapshots(std::unique_ptr<ObjectStore> objects, const ModelIdentity& identity, std::string place)
    : objects_(std::move(objects)), identity_(identity), model_(short_model(identity)), place_(std::move(place)) {}

Checksum SharedSnapshots::content_of(LastingKey key, std::span<const Token> tokens) const {
  Checksummer sum;
  sum.add(identity_.weights);
  sum.add(identity_.context);
  for (const std::uint64_t part : {key.tenant, key.adapter}) {
    std::array<std::byte, 8> bytes{};
    put_number_in(bytes, part);
    sum.add(bytes);
  }
  sum.add(std::as_bytes(tokens));
  return sum.result();
}

Result<std::vector<std::string>> SharedSnapshots::names_in(const std::string& folder) {
  auto listed = objects_->list(folder, kListedMax);
  if (!listed) return listed.error();
  std::vector<std::string> out;
  for (const std::string& object : *listed) {
    std::string name = object.substr(object.rfind('/') + 1);
    if (read_name(name)) out.push_back(std::move(name));
  }
  std::ranges::sort(out);
  return out;
}

Result<std::vector<SharedSnapshot>> SharedSnapshots::list() {
  auto names = names_in(std::string(kHeads));
  if (!names) return names.error();
  std::vector<SharedSnapshot> out;
  out.reserve(names->size());
  for (std::string& name : *names) {
    const Named named = *read_name(name);
    out.push_back({std::move(name), named.bytes, named.tenant, named.content, named.model == model_});
  }
  return out;
}

std::vector<Result<SnapshotHead>> SharedSnapshots::heads(std::span<const SharedSnapshot> of,
                                                         const SnapshotLimits& limits) {
  std::vector<std::string> objects;
  for (const SharedSnapshot& each : of) objects.push_back(in_folder(kHeads, each.name));
  std::vector<Result<SnapshotHead>> out;
  std::size_t next = 0;
  for (const auto& got : objects_->get(objects, kHeadMax)) {
    const SharedSnapshot& asked = of[next++];
    if (!got) {
      out.emplace_back(got.error());
      continue;
    }
    auto head = unpack_snapshot_head(*got, identity_, limits);
    if (head && !is_as_named(asked, *head)) head = under_another_name();
    out.push_back(std::move(head));
  }
  return out;
}

// Where names are not sealed.
bool SharedSnapshots::is_as_named(const SharedSnapshot& name, const SnapshotHead& head) const {
  return name.tenant == head.key.tenant && name.content == content_of(head.key, head.tokens);
}

// What is damaged is asked for twice: it may be the network.
Result<LoadedSnapshot> SharedSnapshots::read(const SharedSnapshot& which, const SnapshotLimits& limits) {
  const std::uint64_t most = snapshot_file_bytes(static_cast<std::size_t>(limits.tokens), limits.kv_bytes);
  if (which.bytes > most) return Error{ErrorCode::too_large, "it has more than the cache holds", ""};
  auto loaded = read_once(which, limits);
  if (!loaded && loaded.error().code == ErrorCode::invalid_request) loaded = read_once(which, limits);
  return loaded;
}

Result<LoadedSnapshot> SharedSnapshots::read_once(const SharedSnapshot& which, const SnapshotLimits& limits) {
  const std::string object = in_folder(kSnapshots, which.name);
  auto got = objects_->get({&object, 1}, which.bytes);
  if (!got.front()) return got.front().error();
  auto loaded = unpack_snapshot(*got.front(), identity_, limits);
  if (loaded && !is_as_named(which, loaded->head)) return under_another_name();
  return loaded;
}

Result<SharedSnapshot> SharedSnapshots::write(LastingKey key, std::span<const Token> tokens, KvSnapshotPtr kv,
                                              std::int64_t now) {
  std::vector<std::byte> packed = pack_snapshot(identity_, key, tokens, *kv);
  kv.reset();
  const Named named{static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0)), packed.size(), key.tenant, model_,
                    content_of(key, tokens)};
  SharedSnapshot out{name_of(named), named.bytes, named.tenant, named.content, true};
  const auto head = packed_head(packed);
  StoredObject small{in_folder(kHeads, out.name), {head.begin(), head.end()}};
  const StoredObject whole{in_folder(kSnapshots, out.name), std::move(packed)};
  for (const StoredObject* object : {&whole, &std::as_const(small)}) {
    auto put = objects_->put({object, 1});
    if (!put.front()) continue;
    (void)remove({&out, 1});  // what may be there of it counts nowhere
    return std::move(*put.front());
  }
  return out;
}

Result<void> SharedSnapshots::remove_objects(std::vector<std::string> objects) {
  std::optional<Error> failed;
  for (std::span<const std::string> left = objects; !left.empty();) {
    const auto some = left.first(std::min(left.size(), kRemovedAtOnce));
    left = left.subspan(some.size());
    for (auto& outcome : objects_->remove(some)) {
      if (outcome) failed = std::move(outcome);
    }
    if (failed) return *failed;
  }
  return {};
}

Result<void> SharedSnapshots::remove(std::span<const SharedSnapshot> which) {
  for (const std::string_view folder : {kHeads, kSnapshots}) {
    std::vector<std::string> objects;
    for (const SharedSnapshot& each : which) objects.push_back(in_folder(folder, each.name));
    if (auto removed = remove_objects(std::move(objects)); !removed) return removed;
  }
  return {};
}

Result<std::size_t> SharedSnapshots::remove_strays(std::int64_t before) {
  // In this order: what is written meanwhile has its head later.
  auto wholes = names_in(std::string(kSnapshots));
  if (!wholes) return wholes.error();
  const auto heads = names_in(std::string(kHeads));
  if (!heads) return heads.error();
  std::vector<std::string> strays;
  for (const std::string& name : *wholes) {
    const bool old = std::cmp_less(read_name(name)->time, before);
    if (old && !std::ranges::binary_search(*heads, name)) strays.push_back(in_folder(kSnapshots, name));
  }
  const std::size_t count = strays.size();
  if (auto removed = remove_objects(std::move(strays)); !removed) return removed.error();
  return count;
}

Result<std::size_t> SharedSnapshots::erase(std::uint64_t tenant) {
  std::set<std::string> names;
  for (const std::string_view folder : {kHeads, kSnapshots}) {
    const auto found = names_in(std::string(folder));
    if (!found) return found.error();
    std::vector<std::string> objects;
    for (const std::string& name : *found) {
      if (read_name(name)->tenant != tenant) continue;
      names.insert(name);
      objects.push_back(in_folder(folder, name));
    }
    if (auto removed = remove_objects(std::move(objects)); !removed) return removed.error();
  }
  return names.size();
}

}  // namespace chasqui::store
