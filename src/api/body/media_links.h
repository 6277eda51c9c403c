// Pictures that a request names by an address instead of sending them (http, https), where the operator lets clients do
// that (--media-url-hosts). They are fetched before the request is read, and stand in its body as data URLs from then
// on: so whatever reads bodies knows nothing of it. Part of the Node; loop thread, but for what its pools run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "base/metric_set.h"
#include "net/awaitable.h"
#include "net/offload.h"

namespace chasqui {

struct Call;
struct ServedModel;

struct MediaLinkMetrics : MetricSet {
  Counter fetched{*this, {"chasqui_media_links_total", "Pictures that were fetched from where requests said."}};
  Counter bytes{*this, {"chasqui_media_link_bytes_total", "Bytes of them."}};
  Counter failed{*this, {"chasqui_media_links_failed_total", "Requests refused since a picture could not be fetched."}};
};

struct MediaLinks {
  // All of them, in their order, or what is wrong with the one at `failed`, to be put behind the name of its field.
  struct Fetched {
    std::vector<std::string> files;
    std::size_t failed = 0;
    std::string why{};
    bool stopped = false;  // the server stops: no fault of the request
  };
  net::OffloadPool& pool;                                         // of threads that wait for other servers
  std::function<Fetched(const std::vector<std::string>&)> fetch;  // by those
  MediaLinkMetrics metrics{};
};

// Whether requests to this model may name pictures.
bool may_link_media(const Frontend& frontend, const ServedModel& served);

// Before the body is read, and behind admission: an overloaded server fetches nothing. `gone`: the client is.
// REQUIRES: they may. Errors: invalid_request that names the field; overloaded; unavailable, the server stops.
net::Awaitable<Result<void>> bring_linked_media(Frontend& frontend, Caller caller, std::string& body,
                                                std::function<bool()> gone);
net::Awaitable<Result<void>> bring_linked_media(Call& call);

}  // namespace chasqui
