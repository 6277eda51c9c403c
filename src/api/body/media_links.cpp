#include "api/body/media_links.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <boost/json/serialize.hpp>

#include "api/body/fields.h"
#include "api/core/call.h"
#include "api/core/entry.h"
#include "api/core/reading_time.h"
#include "api/core/served_model.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

bool is_link(std::string_view text) {
  const std::string scheme = in_small_letters(text.substr(0, 8));
  return scheme.starts_with("http://") || scheme == "https://";
}

std::string item(const std::string& path, std::size_t place) { return path + '[' + std::to_string(place) + ']'; }

// An address in a body.
struct Link {
  std::string path;  // as readers of bodies name it
  std::string url;
};

struct LinkedBody {
  std::string text;
  std::vector<Link> links;
};

// Called with each address, where it is in the tree and what it is called.
using LinkTaker = std::function<void(json::string& url, const std::string& path)>;

// Looks where dialects have pictures: in parts of messages (of the one that a session gets, too), of Responses' items
// and of results of tools.
class LinkFinder {
 public:
  explicit LinkFinder(LinkTaker take) : take_(std::move(take)) {}

  void search(json::object& body) {
    for (const char* const name : {"messages", "input"}) {
      each(body.if_contains(name), name,
           [this](json::value& value, const std::string& path) { message(&value, path); });
    }
    message(body.if_contains("message"), "message");
  }

 private:
  void message(json::value* value, const std::string& path) {
    if (value == nullptr || !value->is_object()) return;
    for (const char* const content : {"content", "output"}) {
      parts(value->get_object().if_contains(content), path + '.' + content);
    }
  }

  template <class Do>
  void each(json::value* list, const std::string& path, Do take) {
    if (list == nullptr || !list->is_array()) return;
    for (std::size_t i = 0; i < list->get_array().size(); ++i) take(list->get_array()[i], item(path, i));
  }

  void parts(json::value* list, const std::string& path) {
    each(list, path, [this](json::value& value, const std::string& at) {
      if (value.is_object()) part(value.get_object(), at);
    });
  }

  void part(json::object& part, const std::string& path) {
    const json::value* const named = part.if_contains("type");
    const std::string_view type = named != nullptr && named->is_string() ? std::string_view(named->get_string()) : "";
    if (type == "image_url" || type == "input_image") {
      json::value* const given = part.if_contains("image_url");
      const bool wrapped = given != nullptr && given->is_object();
      offer(wrapped ? given->get_object().if_contains("url") : given,
            path + (wrapped ? ".image_url.url" : ".image_url"));
    } else if (type == "image") {
      json::value* const source = part.if_contains("source");
      if (source != nullptr && source->is_object())
        offer(source->get_object().if_contains("url"), path + ".source.url");
    } else if (type == "tool_result") {
      parts(part.if_contains("content"), path + ".content");
    }
  }

  void offer(json::value* value, const std::string& path) {
    if (value != nullptr && value->is_string() && is_link(value->get_string())) take_(value->get_string(), path);
  }

  const LinkTaker take_;
};

// Without links where it cannot be read: whatever reads it next says why.
Result<LinkedBody> find_links(std::string text) {
  LinkedBody out{std::move(text), {}};
  const auto has = [&out](const char* letters) { return out.text.find(letters) != std::string::npos; };
  if (!has("ttp") && !has("TTP") && !has("\\u")) return out;  // a letter may be written by its number
  auto tree = parse_json(out.text);
  if (!tree || !tree->is_object()) return out;
  LinkFinder([&out](const json::string& url, const std::string& path) {
    out.links.push_back({path, std::string(url)});
  }).search(tree->get_object());
  constexpr std::size_t kMost = kSizeLimit<"media_files">;
  if (out.links.size() > kMost) {
    const std::string& path = out.links[kMost].path;
    return invalid_field(path, path + ": a request may have at most " + std::to_string(kMost) + " pictures and sounds");
  }
  constexpr std::size_t kBytes = kSizeLimit<"media_link_bytes">;
  for (const Link& link : out.links) {
    if (link.url.size() <= kBytes) continue;
    return invalid_field(link.path, link.path + " must be an address of at most " + std::to_string(kBytes) + " bytes");
  }
  return out;
}

using Files = std::map<std::string, std::string, std::less<>>;  // by their addresses

// REQUIRES: the text has been read before, and all its links are in `files`
std::string with_files(const std::string& text, const Files& files) {
  auto tree = parse_json(text);
  CHECK(tree && tree->is_object(), "a body that was read before");
  LinkFinder([&files](json::string& url, const std::string& /*path*/) {
    // What a file claims to be is not asked: its bytes say what it is.
    url = "data:image/png;base64," + encode_base64(files.find(std::string_view(url))->second);
  }).search(tree->get_object());
  return json::serialize(*tree);
}

// Of the body with its files, each as often as it is named: a picture that is named 64 times is there 64 times.
Result<std::size_t> bytes_with(const Files& files, const LinkedBody& body) {
  constexpr std::size_t kMost = kSizeLimit<"body_bytes">;
  std::size_t named = 0;
  for (const Link& link : body.links) {
    named += files.find(link.url)->second.size();
    if (named <= kMost) continue;
    return invalid_field(link.path, link.path + ": the files that a request names have at most " +
                                        std::to_string(kMost) + " bytes together");
  }
  return body.text.size() + named / 3 * 4;
}

}  // namespace

bool may_link_media(const Frontend& frontend, const ServedModel& served) {
  return frontend.links != nullptr && served.model.media != nullptr;
}

net::Awaitable<Result<void>> bring_linked_media(Frontend& frontend, Caller caller, std::string& body,
                                                std::function<bool()> gone) {
  MediaLinks& links = *frontend.links;
  net::OffloadTerms terms = reading_terms(caller, body);
  terms.gone = gone;
  auto find = [text = std::move(body)]() mutable { return find_links(std::move(text)); };
  Result<LinkedBody> found = co_await frontend.offload.run(std::move(find), std::move(terms));
  if (!found) co_return found.error();
  if (found->links.empty()) {
    body = std::move(found->text);
    co_return Result<void>();
  }

  std::vector<std::string> urls;  // each once
  for (const Link& link : found->links) {
    if (std::ranges::find(urls, link.url) == urls.end()) urls.push_back(link.url);
  }
  net::OffloadTerms fetching;
  fetching.owner = caller.tenant.id;
  fetching.bytes = found->text.size();
  fetching.can_wait = net::OffloadPool::kLong;
  fetching.gone = gone;
  auto fetch = [&links, urls] { return links.fetch(urls); };
  Result<MediaLinks::Fetched> fetched = co_await links.pool.run(std::move(fetch), std::move(fetching));
  if (!fetched) co_return fetched.error();
  if (fetched->stopped) co_return Error{ErrorCode::unavailable, "the server stops", ""};
  if (!fetched->why.empty()) {
    links.metrics.failed.add();
    const std::string& path = std::ranges::find(found->links, urls[fetched->failed], &Link::url)->path;
    co_return invalid_field(path, path + fetched->why);
  }

  Files files;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    links.metrics.bytes.add(fetched->files[i].size());
    files.emplace(urls[i], std::move(fetched->files[i]));
  }
  links.metrics.fetched.add(urls.size());
  const Result<std::size_t> bytes = bytes_with(files, *found);
  if (!bytes) co_return bytes.error();
  net::OffloadTerms writing;
  writing.owner = caller.tenant.id;
  writing.bytes = *bytes;
  writing.can_wait = writing_can_wait(*bytes);
  writing.gone = std::move(gone);
  auto write = [text = std::move(found->text), files = std::move(files)] { return with_files(text, files); };
  Result<std::string> written = co_await frontend.offload.run(std::move(write), std::move(writing));
  if (!written) co_return written.error();
  body = std::move(*written);
  co_return Result<void>();
}

net::Awaitable<Result<void>> bring_linked_media(Call& call) {
  std::function<bool()> gone = [&exchange = call.exchange] { return exchange.client_gone(); };
  Caller caller = call.caller;
  Result<void> brought = co_await bring_linked_media(call.frontend, std::move(caller), call.body, std::move(gone));
  co_return brought;
}

}  // namespace chasqui
