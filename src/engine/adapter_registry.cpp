#include "engine/adapter_registry.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui {
namespace {

constexpr std::size_t kUnloadedKnown = 256;

}  // namespace

// The last copy of it goes with the last list or set that has the adapter, on whatever thread that is.
class AdapterRegistry::Lease {
 public:
  explicit Lease(std::shared_ptr<std::atomic<bool>> ended) : ended_(std::move(ended)) {}
  ~Lease() { ended_->store(true, std::memory_order_release); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  const std::shared_ptr<std::atomic<bool>> ended_;
};

std::optional<std::size_t> AdapterList::find(std::string_view name) const {
  const auto found = std::ranges::find_if(all_, [name](const ListedAdapter& one) { return one.info.name == name; });
  if (found == all_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all_.begin());
}

std::optional<std::size_t> AdapterList::at_place(std::int64_t place) const {
  const auto found = std::ranges::find_if(all_, [place](const ListedAdapter& one) { return one.info.place == place; });
  if (found == all_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all_.begin());
}

std::string AdapterList::names() const {
  std::string text;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == all_.size() ? " and " : ", ") + all_[i].info.name;
  }
  return text;
}

bool AdapterList::was_unloaded(std::string_view name) const {
  return std::ranges::find(unloaded_, name) != unloaded_.end();
}

std::vector<float> AdapterList::standing_scales() const {
  std::vector<float> scales;
  for (const ListedAdapter& one : all_) scales.push_back(one.standing);
  return scales;
}

AdapterSetPtr AdapterList::set_of(std::span<const float> scales, bool named_in_full) const {
  CHECK(scales.size() == all_.size());
  std::vector<AdapterChoice> choices;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const AdapterInfo& info = all_[i].info;
    choices.push_back({{info.place, scales[i], info.version}, info.contents, all_[i].lease});
  }
  return make_chosen_set(choices, named_in_full);
}

std::map<std::uint64_t, std::string> AdapterList::names_by_set() const {
  std::map<std::uint64_t, std::string> out;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    std::vector<float> scales(all_.size());
    scales[i] = all_[i].info.scale;
    out.emplace(id_of(set_of(scales).get()), all_[i].info.name);
  }
  out[id_of(standing().get())].clear();
  return out;
}

void AdapterRegistry::on_change(std::function<void(const AdapterList&)> callback) {
  changed_ = std::move(callback);
  changed_(*list());
}

AdapterRegistry::AdapterRegistry(const std::vector<AdapterInfo>& adapters, bool apply) {
  std::vector<ListedAdapter> all;
  for (const AdapterInfo& adapter : adapters) {
    all.push_back(lease(adapter, apply && !adapter.at_run_time ? adapter.scale : 0));
  }
  publish(std::move(all), {});
}

ListedAdapter AdapterRegistry::lease(AdapterInfo adapter, float standing) {
  auto ended = std::make_shared<std::atomic<bool>>(false);
  leased_.push_back({adapter.place, ended});
  return {std::move(adapter), standing, std::make_shared<const Lease>(std::move(ended))};
}

void AdapterRegistry::leave(std::int32_t place) {
  const auto gone = std::ranges::find(leased_, place, &Leased::place);
  leaving_.push_back(std::move(*gone));
  leased_.erase(gone);
}

void AdapterRegistry::set_standing_scales(const AdapterList& list, std::span<const float> scales) {
  CHECK(scales.size() == list.size());
  std::vector<ListedAdapter> all = this->list()->all();
  for (ListedAdapter& one : all) {
    const auto place = list.at_place(one.info.place);
    if (place && list[*place].version == one.info.version) one.standing = scales[*place];
  }
  publish(std::move(all), this->list()->unloaded());
}

void AdapterRegistry::take_over(const AdapterList& before) {
  std::vector<ListedAdapter> all = list()->all();
  for (ListedAdapter& one : all) {
    if (const auto same = before.find(one.info.name)) one.standing = before.all()[*same].standing;
  }
  publish(std::move(all), before.unloaded());
}

void AdapterRegistry::add(AdapterInfo adapter) {
  std::vector<ListedAdapter> all = list()->all();
  float standing = 0;
  const auto same = std::ranges::find_if(all, [&](const ListedAdapter& one) { return one.info.name == adapter.name; });
  if (same != all.end()) {
    standing = same->standing;
    leave(same->info.place);
    all.erase(same);
  }
  const auto behind =
      std::ranges::find_if(all, [&](const ListedAdapter& one) { return one.info.place > adapter.place; });
  std::vector<std::string> unloaded = list()->unloaded();
  std::erase(unloaded, adapter.name);
  all.insert(behind, lease(std::move(adapter), standing));
  publish(std::move(all), std::move(unloaded));
}

bool AdapterRegistry::remove(std::string_view name) {
  std::vector<ListedAdapter> all = list()->all();
  const auto gone = std::ranges::find_if(all, [name](const ListedAdapter& one) { return one.info.name == name; });
  if (gone == all.end()) return false;
  std::vector<std::string> unloaded = list()->unloaded();
  if (unloaded.size() >= kUnloadedKnown) unloaded.erase(unloaded.begin());
  unloaded.emplace_back(name);
  leave(gone->info.place);
  all.erase(gone);
  publish(std::move(all), std::move(unloaded));
  return true;
}

std::vector<std::int32_t> AdapterRegistry::leaving() const {
  std::vector<std::int32_t> places;
  for (const Leased& one : leaving_) places.push_back(one.place);
  return places;
}

std::vector<std::int32_t> AdapterRegistry::take_ended() {
  std::vector<std::int32_t> places;
  std::erase_if(leaving_, [&places](const Leased& one) {
    if (!one.ended->load(std::memory_order_acquire)) return false;
    places.push_back(one.place);
    return true;
  });
  return places;
}

}  // namespace chasqui
