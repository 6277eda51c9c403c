// Objects as files of a WebDAV server (nginx with its dav and dav-ext modules, Apache and others). Folders are made
// where a PUT says that they are missing; they stay when they are empty, and are listed then, since the protocol has no
// way to remove only those. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/http_objects.h"
#include "store/http_transfers.h"
#include "store/object_store.h"

namespace chasqui::store {

struct WebdavPlace {
  std::string origin;  // "https://host:port"
  std::string path;    // as it stands in a URL: empty, or with a slash before each part and none at its end
};

class WebdavStore final : public ObjectStore {
 public:
  WebdavStore(WebdavPlace place, std::unique_ptr<HttpExchanges> http);

  Outcomes put(std::span<const StoredObject> objects) override;
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override;
  Outcomes remove(std::span<const std::string> names) override;
  Result<std::vector<std::string>> list(const std::string& folder, std::size_t most) override;

 private:
  std::string url_of(const std::string& path) const { return place_.origin + path; }
  std::string path_of(const std::string& name) const { return place_.path + '/' + name; }
  HttpObjects objects();
  Error refusal(const HttpAnswer& answer) const;
  Error nonsense(const std::string& why) const;
  // Those that are named; which of them say that their folder is missing.
  std::vector<std::size_t> put_some(std::span<const StoredObject> objects, std::span<const std::size_t> which,
                                    Outcomes& out);
  // And those above it that are missing. `path` as in a URL, without a slash at its end.
  Result<void> make_folder(const std::string& path);
  Result<std::vector<std::string>> read_list(const HttpAnswer& answer, const std::string& folder,
                                             std::size_t most) const;

  const WebdavPlace place_;
  const std::string shown_;
  const std::unique_ptr<HttpExchanges> http_;
};

}  // namespace chasqui::store
