#include "pull/hub.h"

#include <iterator>
#include <ranges>
#include <utility>

#include "pull/retries.h"

namespace chasqui::pull {
namespace {

constexpr int kPagesMax = 200;

// An address may have a password, which is for no message.
std::string shown(std::string endpoint) {
  const std::size_t host = endpoint.find("//") + 2;
  const std::size_t at = endpoint.find_last_of('@', endpoint.find('/', host));
  if (at != endpoint.npos && at > host) endpoint.erase(host, at + 1 - host);
  return endpoint;
}

}  // namespace

Error stopped_error() { return {ErrorCode::unavailable, "stopped", ""}; }

HubQuestion Hub::question(const std::string& repo, const std::string& revision, const std::string& file) const {
  return {shown(settings_.endpoint), repo, revision, file, !settings_.token.empty()};
}

Result<TransferAnswer> Hub::ask(const std::string& url, const HubQuestion& question) {
  Retries retries(settings_.retries);
  while (true) {
    TransferAnswer answer = transfer_.get({url, settings_.token});
    if (answer.ending == TransferAnswer::Ending::stopped) return stopped_error();
    if (answer.ending == TransferAnswer::Ending::answered && answer.head.status == 200) return answer;
    Error refusal = refusal_of(question, answer);
    if (refusal.code != ErrorCode::unavailable) return refusal;
    const auto pause = retries.next(refusal.retry_after);
    if (!pause) return refusal;
    watcher_.notes(refusal.message + "; asking again");
    if (stop_.wait(*pause)) return stopped_error();
  }
}

Result<Listing> Hub::list(const std::string& repo, const std::string& revision) {
  const HubQuestion asked = question(repo, revision, "");
  const std::string api = settings_.endpoint + "/api/models/" + repo;
  const auto head = ask(api + "/revision/" + in_address(revision, false), asked);
  if (!head) return head.error();
  auto commit = read_commit(head->body);
  if (!commit) return Error{commit.error().code, asked.endpoint + ": " + commit.error().message, ""};
  Listing out{std::move(*commit), {}};
  std::string next = api + "/tree/" + out.commit + "?recursive=true";
  for (int page = 0; !next.empty(); ++page) {
    // The token goes there, too.
    if (page == kPagesMax || !next.starts_with(settings_.endpoint + '/')) {
      return Error{ErrorCode::unavailable, repo + ": the list of its files does not end, or goes on at another hub",
                   ""};
    }
    const auto answer = ask(next, asked);
    if (!answer) return answer.error();
    auto files = read_files(answer->body);
    if (!files) return Error{files.error().code, asked.endpoint + ": " + files.error().message, ""};
    std::ranges::move(*files, std::back_inserter(out.files));
    next = read_next_page(answer->head.header("link"));
  }
  return out;
}

TransferAnswer Hub::get(const std::string& repo, const std::string& commit, const std::string& file,
                        TransferCall call) {
  call.url = settings_.endpoint + '/' + repo + "/resolve/" + commit + '/' + in_address(file, true);
  call.token = settings_.token;
  return transfer_.get(call);
}

}  // namespace chasqui::pull
