// What fetches the pictures that clients name (--media-url-hosts): a few threads that wait for other servers, since
// those that read bodies must not. Part of the Server; loop thread. No more is fetched once it is destroyed.
#pragma once

#include <string>
#include <vector>

#include "api/body/media_links.h"
#include "base/error.h"
#include "base/wakeup.h"
#include "net/offload.h"
#include "pull/link_fetch.h"

namespace chasqui {

class LinkService {
 public:
  LinkService(net::EventLoop& loop, const std::vector<std::string>& hosts);
  ~LinkService();
  LinkService(const LinkService&) = delete;
  LinkService& operator=(const LinkService&) = delete;

  // Whether this machine has what it takes. Errors name the flag.
  static Result<void> check(const std::vector<std::string>& hosts);

  MediaLinks& links() { return links_; }
  // Ends what is being fetched: the server stops. For good.
  void stop() { stop_.signal(); }

 private:
  Wakeup stop_;
  const pull::LinkTerms terms_;
  MediaLinks links_;
  net::OffloadPool pool_;  // behind what its jobs use
};

}  // namespace chasqui
