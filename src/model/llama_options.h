// llama-server's own flags, as llama-common's parser of the pinned version reads them: what reaches libllama, and what
// requests get that do not say. Which flags come here is app/llama_flags' choice. Main thread at start; constant and
// shared afterwards.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/request_defaults.h"
#include "model/model_info.h"

struct common_params;

namespace chasqui {

// A row of llama-common's table for its server.
struct LlamaOption {
  std::vector<std::string> names;      // "-ot", "--override-tensor"
  std::vector<std::string> off_names;  // "-nr", "--no-repack"
  std::string variable;                // of the environment; empty: none
  int values = 0;                      // words that follow: 0, 1, 2
  bool toggles = false;                // a variable says whether it is on
};

class LlamaOptions {
 public:
  LlamaOptions();
  ~LlamaOptions();
  LlamaOptions(const LlamaOptions&) = delete;
  LlamaOptions& operator=(const LlamaOptions&) = delete;

  // The row of a flag or of its variable; null where llama-server has none.
  const LlamaOption* find(std::string_view name) const;
  const LlamaOption* find_variable(std::string_view variable) const;
  std::span<const LlamaOption> all() const;

  // Errors name the flag. As many values as the row says. Flags that name devices are read by finish().
  Result<void> set(std::string_view name, std::span<const std::string> values);
  // As llama-server reads a variable.
  Result<void> set_variable(std::string_view variable, const std::string& value);
  // --rpc: servers whose devices are to be there when finish() is called; nothing here connects to them.
  const std::string& rpc_servers() const { return rpc_servers_; }
  // Flags that name devices mean nothing: there are only those of this machine, and none is used.
  void forget_devices();
  // Once, after the last flag: which devices are named, what holds between flags, and whether files and templates that
  // they name can be read.
  Result<void> finish();

  // What the server's requests begin with.
  RequestDefaults defaults(const ModelInfo& info) const;
  // --chat-template: its text, or the name of one that libllama knows; empty: the model's own.
  const std::string& chat_template() const;
  // Whether --cpu-mask says which CPUs compute.
  bool names_cpus() const;

  // For the files of this folder.
  const common_params& params() const { return *params_; }

 private:
  struct Table;

  Result<void> take(std::size_t row, std::string_view name, bool on, std::span<const std::string> values);
  Result<void> run(std::size_t row, std::string_view name, bool on, std::span<const std::string> values);

  std::unique_ptr<common_params> params_;
  std::unique_ptr<Table> table_;
  std::string rpc_servers_;
};
using LlamaOptionsPtr = std::shared_ptr<const LlamaOptions>;

}  // namespace chasqui
