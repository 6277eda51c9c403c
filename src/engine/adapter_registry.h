// The adapters that clients may ask for by name or number, and what a request gets that asks for none. The loop changes
// the list, as a whole: any thread reads a list that stays as it is. An adapter that was taken off the list is in use
// as long as there is a list or a set with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/adapter_set.h"
#include "model/model_info.h"

namespace chasqui {

struct ListedAdapter {
  AdapterInfo info;
  float standing = 0;                 // its scale in requests that say nothing
  std::shared_ptr<const void> lease;  // see AdapterChoice
};

// Ascending by place; constant.
class AdapterList {
 public:
  AdapterList(std::vector<ListedAdapter> all, std::vector<std::string> unloaded)
      : all_(std::move(all)), unloaded_(std::move(unloaded)) {}

  const std::vector<ListedAdapter>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  const AdapterInfo& operator[](std::size_t i) const { return all_[i].info; }
  // Where it is in the list.
  std::optional<std::size_t> find(std::string_view name) const;
  std::optional<std::size_t> at_place(std::int64_t place) const;
  // "a, b and c", for errors.
  std::string names() const;
  // The latest names that were removed, and that none has now: a request that says one of them means no other model.
  const std::vector<std::string>& unloaded() const { return unloaded_; }
  bool was_unloaded(std::string_view name) const;

  // What requests get that say nothing.
  std::vector<float> standing_scales() const;
  AdapterSetPtr standing() const { return set_of(standing_scales()); }
  // REQUIRES: one scale for each adapter
  AdapterSetPtr set_of(std::span<const float> scales, bool named_in_full = false) const;
  // What requests are computed with that name one adapter, or say nothing, by AdapterSet::id: its name, or an empty
  // one.
  std::map<std::uint64_t, std::string> names_by_set() const;

 private:
  const std::vector<ListedAdapter> all_;
  const std::vector<std::string> unloaded_;
};
using AdapterListPtr = std::shared_ptr<const AdapterList>;

class AdapterRegistry {
 public:
  // Requests that say nothing get each at the scale it was loaded with, or, with `apply` false, none of them; none of
  // those that were loaded at run time.
  AdapterRegistry(const std::vector<AdapterInfo>& adapters, bool apply);

  // Any thread.
  AdapterListPtr list() const { return list_.load(); }

  // Loop thread: this is called with the list that there is, and with each one that takes its place.
  void on_change(std::function<void(const AdapterList&)> callback);
  // Loop thread. `scales` are of the adapters of `list`, those that have gone since do not count.
  void set_standing_scales(const AdapterList& list, std::span<const float> scales);
  // What was said to the registry of the version before of the model holds for adapters of the same names.
  void take_over(const AdapterList& before);
  // In the place of one with its name, if there is one, whose standing scale it gets.
  void add(AdapterInfo adapter);
  // False: there is none of this name.
  bool remove(std::string_view name);
  // Places of adapters that were removed and are not in use any more; each is told once.
  std::vector<std::int32_t> take_ended();
  // Those that are still in use.
  std::vector<std::int32_t> leaving() const;

 private:
  class Lease;
  struct Leased {
    std::int32_t place;
    std::shared_ptr<const std::atomic<bool>> ended;
  };

  ListedAdapter lease(AdapterInfo adapter, float standing);
  void leave(std::int32_t place);
  void publish(std::vector<ListedAdapter> all, std::vector<std::string> unloaded) {
    list_.store(std::make_shared<const AdapterList>(std::move(all), std::move(unloaded)));
    if (changed_) changed_(*list());
  }

  std::atomic<AdapterListPtr> list_;
  std::function<void(const AdapterList&)> changed_;
  std::vector<Leased> leased_;   // of the list
  std::vector<Leased> leaving_;  // of none any more
};

}  // namespace chasqui
