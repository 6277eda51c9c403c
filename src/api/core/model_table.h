// The models of a node, loaded or not, by the name that a request says. Which there are is constant after start; what
// is loaded, and which version of it, changes where there is a ModelLoader. Loop thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "net/awaitable.h"

namespace chasqui {

struct ServedModel;

enum class ModelState { unloaded, loading, ready, draining, failed };

// "unloaded", "loading", "loaded", "draining", "failed": as llama-server's router says it, where that has a word.
std::string_view name(ModelState state);

struct ModelStatus {
  ModelState state = ModelState::ready;
  double progress = 1;   // of loading, 0 … 1
  std::string reason{};  // of failed
  bool on_demand = false;  // it may be unloaded: after so long without a request, or when others need its room
  std::optional<Duration> stays{};
};

struct ModelEntry {
  std::string name;
  std::vector<std::string> aliases{};  // `name` among them
  std::vector<std::string> tags{};
  std::vector<std::string> adapters{};  // their names
  std::uint64_t bytes = 0;              // of its files
  std::uint64_t needs = 0;              // bytes of memory, as its file says, once it is loaded; 0: not known
  ServedModel* served = nullptr;        // null until it is loaded for the first time; stays when it is unloaded, and
                                        // changes when another version replaces it
};

// What a request does while it waits until its model is loaded.
struct ModelWait {
  std::function<bool()> gone{};  // whether the client has left
  // Tells the client that it waits, each time when so much time has passed; false: it has left. Empty: it is not told.
  std::function<net::Awaitable<bool>()> tell{};
  Duration tell_every{};
};

// Loads models when they are asked for, and unloads them. Made by the application.
class ModelLoader {
 public:
  virtual ~ModelLoader() = default;

  virtual ModelStatus status(const ModelEntry& entry) const = 0;
  // Whether a request may have to wait for its model: some are loaded on demand, or one has to go before its next
  // version is loaded. Otherwise ready() need not be asked.
  virtual bool may_wait() const = 0;
  // When it is loaded, and there is room for it. Errors: why it cannot be; unavailable when the node drains, or the
  // client has left.
  virtual net::Awaitable<Result<ServedModel*>> ready(const ModelEntry& entry, ModelWait wait) = 0;
  // Begins to load, also what has failed. Where it is loaded and its file has changed, or `path` names another one, it
  // is replaced by what is in the file, and this waits until that serves; the old version goes on if it cannot. Errors:
  // why not; conflict where it is loaded, or being loaded, and the file is the same.
  virtual net::Awaitable<Result<void>> load(const ModelEntry& entry, std::string path) = 0;
  // After what runs. Errors: conflict where it is so already.
  virtual Result<void> unload(const ModelEntry& entry) = 0;
  // Another version of it is being loaded, with the adapters that this one had when that began.
  virtual bool replacing(const ModelEntry& entry) const = 0;
};

// No model has a longer name. Who reads one in the pool looks there: on the loop a name as long as a body would be
// copied from error to error.
constexpr bool may_name_model(std::string_view name) { return name.size() <= kSizeLimit<"model_name_bytes">; }
// … of such a name, which it does not repeat.
Error no_model_of_long_name();

class ModelTable {
 public:
  // `model` outlives the table, and is loaded as long as that lives.
  void add(ServedModel& model);
  // One that `loader`, which outlives the table, loads later. Its place does not change.
  const ModelEntry& add(ModelEntry entry, ModelLoader& loader);
  // … and has now loaded for the first time.
  void made(const ModelEntry& entry, ServedModel& model);

  // Another version takes the place of the one that was made; that stays among the leaving until left().
  void replaced(const ModelEntry& entry, ServedModel& next);
  void left(const ServedModel& model);
  void set_needs(const ModelEntry& entry, std::uint64_t needs, std::uint64_t bytes);
  // Adapters of the model have come or gone.
  void follow_adapters(const ServedModel& model);

  // A table of one model has it for every name but those of adapters that were unloaded, as clients send the names of
  // other servers' models, unless names are checked. Otherwise the name is that of a model, or of one of its adapters
  // ("model:adapter", or as vLLM has it "adapter"), and may end in ":latest" as Ollama's names do; not_found lists the
  // models whose names are near. Without a name it is the first that was made.
  // REQUIRES: there is a model, and one was made
  Result<const ModelEntry*> find(std::string_view name) const;
  ServedModel& first() const { return *made_.front(); }
  const ModelEntry& entry_of(const ServedModel& model) const;
  bool has_choice() const { return entries_.size() > 1 || checks_names_; }
  // What a request says as `model` matters.
  bool reads_names() const;
  // A model, or an adapter of one, that answers to exactly this name; null: none.
  const ModelEntry* named(std::string_view name) const;
  // One model, too, answers to its own names alone (--check-model).
  void check_names() { checks_names_ = true; }
  // Those that were made, in the order in which that was so.
  const std::vector<ServedModel*>& all() const { return made_; }
  // … and the versions that others have replaced and that still have requests.
  std::vector<ServedModel*> all_versions() const;
  const std::deque<ModelEntry>& entries() const { return entries_; }

  ModelStatus status(const ModelEntry& entry) const;
  // Null: all stay as they are.
  ModelLoader* loader() const { return loader_; }
  bool may_wait() const { return loader_ != nullptr && loader_->may_wait(); }
  net::Awaitable<Result<ServedModel*>> ready(const ModelEntry& entry, ModelWait wait) const;

 private:
  std::deque<ModelEntry> entries_;
  std::vector<ServedModel*> made_;
  std::vector<ServedModel*> leaving_;
  ModelLoader* loader_ = nullptr;
  bool checks_names_ = false;
};

}  // namespace chasqui
