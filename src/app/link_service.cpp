#include "app/link_service.h"

#include <utility>

namespace chasqui {
namespace {

// That fetch at once, for one request each.
constexpr std::size_t kThreads = 8;
// Requests that wait for one of them; a further one is refused with 503.
constexpr std::size_t kWaiting = 256;

pull::LinkTerms terms_of(const std::vector<std::string>& hosts, const Wakeup& stop) {
  auto parsed = pull::LinkHosts::parse(hosts);
  CHECK(parsed.has_value(), "hosts that were checked when the flags were read");
  pull::LinkTerms terms;
  terms.hosts = std::move(*parsed);
  terms.user_agent = "chasqui/" CHASQUI_VERSION;
  terms.stop = pull::StopSign(stop.fd());
  return terms;
}

}  // namespace

LinkService::LinkService(net::EventLoop& loop, const std::vector<std::string>& hosts)
    : terms_(terms_of(hosts, stop_)),
      links_{
          .pool = pool_,
          .fetch =
              [this](const std::vector<std::string>& urls) {
                pull::LinkedFiles files = pull::fetch_links(urls, terms_);
                return MediaLinks::Fetched{std::move(files.files), files.failed, std::move(files.why), files.stopped};
              }},
      pool_(loop, {.threads = kThreads, .queue_jobs = kWaiting, .name = "links"}) {}

LinkService::~LinkService() { stop_.signal(); }

Result<void> LinkService::check(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return {};
  const auto can = pull::can_fetch_links();
  if (can) return {};
  return invalid_field("--media-url-hosts", "--media-url-hosts: " + can.error().message);
}

}  // namespace chasqui
