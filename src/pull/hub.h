// A hub that speaks Hugging Face's protocol: which files a repository has, and where they are. Asks again what broke
// off. Its owner's thread, which it blocks.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "pull/hub_files.h"
#include "pull/hub_refusal.h"
#include "pull/stop_sign.h"
#include "pull/transfer.h"
#include "pull/watcher.h"

namespace chasqui::pull {

struct HubSettings {
  std::string endpoint;  // http:// or https://, without a slash at the end
  std::string token;     // empty: none
  int retries = 0;       // in a row
};

struct Listing {
  std::string commit;
  std::vector<HubFile> files;
};

// The error of what the stop sign ended.
Error stopped_error();

class Hub {
 public:
  // REQUIRES: all of them outlive it.
  Hub(Transfer& transfer, const HubSettings& settings, const StopSign& stop, Watcher& watcher)
      : transfer_(transfer), settings_(settings), stop_(stop), watcher_(watcher) {}

  // All files that a revision has: of a branch, a tag or a commit.
  Result<Listing> list(const std::string& repo, const std::string& revision);

  // Asks for a file of that commit, once, and gives it as the call says; its address and token are filled in.
  TransferAnswer get(const std::string& repo, const std::string& commit, const std::string& file, TransferCall call);
  HubQuestion question(const std::string& repo, const std::string& revision, const std::string& file) const;

 private:
  Result<TransferAnswer> ask(const std::string& url, const HubQuestion& question);

  Transfer& transfer_;
  const HubSettings& settings_;
  const StopSign& stop_;
  Watcher& watcher_;
};

}  // namespace chasqui::pull
