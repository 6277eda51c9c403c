#include "pull/pull.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/machine.h"
#include "pull/file_choice.h"
#include "pull/file_download.h"
#include "pull/repo_folder.h"

namespace chasqui::pull {
namespace {

Result<void> check_room(const RepoFolder& folder, const std::string& commit, const std::vector<HubFile>& files) {
  std::uint64_t needed = 0;
  for (const HubFile& file : files) {
    const std::uint64_t rest =
        folder.has(commit, file) ? 0 : file.bytes - std::min(file.bytes, folder.partial_bytes(file));
    needed = rest > UINT64_MAX - needed ? UINT64_MAX : needed + rest;
  }
  const auto free = folder.free_bytes();
  if (!free || needed <= *free) return {};
  return Error{ErrorCode::storage_full,
               folder.path().string() + " has room for " + cli::bytes_in_words(*free) + "; " +
                   cli::bytes_in_words(needed) + " are still to come",
               ""};
}

// What else this machine has of the commit stays to be found: serve looks at one snapshot alone.
Result<void> name_known(const RepoFolder& folder, const Listing& listing) {
  for (const HubFile& file : listing.files) {
    if (!file.is_gguf() || !folder.has(listing.commit, file)) continue;
    if (auto named = folder.name(listing.commit, file); !named) return named;
  }
  return {};
}

Result<std::uint64_t> fetch(const DownloadPlace& place, const HubFile& file) {
  if (!place.folder.has(place.commit, file)) return FileDownload(place, file).run();
  place.watcher.knows(file.path, file.bytes);
  return std::uint64_t{0};
}

}  // namespace

Result<Pulled> pull(const PullOrder& order, Hub& hub, int retries, const StopSign& stop, Watcher& watcher) {
  const std::string& repo = order.name.repo;
  const auto listing = hub.list(repo, order.revision);
  if (!listing) return listing.error();
  const auto chosen = choose_files(listing->files, {repo, order.name.quant, order.file, order.projector});
  if (!chosen) return chosen.error();
  std::vector<HubFile> files = chosen->files;
  std::ranges::copy(chosen->projectors, std::back_inserter(files));

  const RepoFolder folder(order.cache, repo);
  if (auto prepared = folder.prepare(); !prepared) return prepared.error();
  if (auto room = check_room(folder, listing->commit, files); !room) return room.error();
  const DownloadPlace place{hub, folder, repo, listing->commit, stop, watcher, retries};
  Pulled out{repo + (chosen->model.empty() ? "" : ':' + chosen->model), listing->commit, {}};
  for (const HubFile& file : files) {
    const auto came = fetch(place, file);
    if (!came) return came.error();
    if (auto named = folder.name(listing->commit, file); !named) return named.error();
    out.files.push_back({file.path, folder.named(listing->commit, file).string(), file.bytes, *came});
  }
  // Only now: until all is there, what the branch was before is what is served.
  if (auto known = name_known(folder, *listing); !known) return known.error();
  if (auto set = folder.set_revision(order.revision, listing->commit); !set) return set.error();
  return out;
}

}  // namespace chasqui::pull
