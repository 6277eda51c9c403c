#include "store/open_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "net/http_request.h"
#include "store/folder_store.h"
#include "store/s3_store.h"
#include "store/sealed_store.h"
#include "store/webdav_store.h"

namespace chasqui::store {
namespace {

constexpr const char* kAllowed =
    "a store is s3://BUCKET[/PREFIX], dav://[USER:PASSWORD@]HOST[:PORT]/PATH, davs://… over TLS, or a path that begins "
    "with '/'";

struct OpenedStore {
  std::unique_ptr<ObjectStore> store;
  std::string shown;  // for messages
};

bool all_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [others](char c) { return is_ascii_word_or(others, c); });
}

// Parts with a slash between them: none is empty, "." or "..".
bool has_good_parts(std::string_view path) {
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_host(std::string_view text) { return !text.empty() && text.front() != ':' && net::is_authority(text); }

std::string_view without_slashes(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Result<std::string> endpoint_of(const ObjectStoreConfig& config, const std::string& region) {
  const bool is_for_s3 = !config.aws_endpoint_url_s3.empty();
  std::string url = is_for_s3 ? config.aws_endpoint_url_s3 : config.aws_endpoint_url;
  if (url.empty()) return "https://s3." + region + ".amazonaws.com";
  while (url.ends_with('/')) url.pop_back();
  std::string_view rest = url;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  }
  const std::size_t slash = rest.find('/');
  const std::string_view host = rest.substr(0, slash);
  const std::string_view path = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  const bool is_url =
      rest.size() < url.size() && is_host(host) && all_of(path, "-_.~/") && (path.empty() || has_good_parts(path));
  if (!is_url) {
    return invalid_field("", std::string(is_for_s3 ? "AWS_ENDPOINT_URL_S3" : "AWS_ENDPOINT_URL") +
                                 " is not http://HOST[:PORT][/PATH] or https://… without a user");
  }
  return url;
}

Result<OpenedStore> open_s3(const ObjectStoreConfig& config, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  const std::string_view prefix = slash == std::string_view::npos ? "" : without_slashes(rest.substr(slash));
  if (bucket.size() < 3 || bucket.size() > 63 || !all_of(bucket, "-_.") || !is_ascii_word(bucket.front())) {
    return invalid_field("", "the bucket of s3://BUCKET[/PREFIX] has 3 to 63 letters, digits, '-', '_' and '.'");
  }
  if (!prefix.empty() && (!all_of(prefix, "-_./") || !has_good_parts(prefix))) {
    return invalid_field("", "the prefix of s3://BUCKET/PREFIX has parts of letters, digits, '-', '_' and '.'");
  }
  if (config.aws_access_key_id.empty() || config.aws_secret_access_key.empty()) {
    return invalid_field("", "s3://… needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment");
  }
  const std::string region = config.aws_region.empty() ? "us-east-1" : config.aws_region;
  if (!all_of(region, "-_")) return invalid_field("", "AWS_REGION has letters, digits, '-' and '_'");
  if (!std::ranges::all_of(config.aws_session_token, [](char c) { return c > ' ' && c < 127; })) {
    return invalid_field("", "AWS_SESSION_TOKEN has printable ASCII characters without blanks");
  }
  auto endpoint = endpoint_of(config, region);
  if (!endpoint) return endpoint.error();
  auto http = HttpTransfers::open({.patience = config.patience,
                                   .user = config.aws_access_key_id,
                                   .password = config.aws_secret_access_key,
                                   .signing = "aws:amz:" + region + ":s3",
                                   .session_token = config.aws_session_token});
  if (!http) return http.error();
  S3Place place{std::move(*endpoint), std::string(bucket), prefix.empty() ? "" : std::string(prefix) + '/'};
  OpenedStore out;
  out.shown = "s3://" + std::string(rest);
  out.store = std::make_unique<S3Store>(std::move(place), std::move(*http));
  return out;
}

Result<OpenedStore> open_webdav(const ObjectStoreConfig& config, std::string_view rest, bool has_tls) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view host = rest.substr(0, slash);
  const std::string_view path = without_slashes(rest.substr(slash));
  HttpTransfers::Settings settings{
      .patience = config.patience, .user = {}, .password = {}, .signing = {}, .session_token = {}};
  if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) {
    const std::string_view login = host.substr(0, at);
    const std::size_t colon = login.find(':');
    const auto user = net::percent_decode(login.substr(0, colon));
    const auto password = colon == std::string_view::npos ? std::nullopt : net::percent_decode(login.substr(colon + 1));
    if (!user || user->empty() || !password || user->find(':') != std::string::npos) {
      return invalid_field("", "before the '@' of dav://… stands USER:PASSWORD, other characters as %41");
    }
    settings.user = *user;
    settings.password = *password;
    host.remove_prefix(at + 1);
  }
  if (!is_host(host)) return invalid_field("", std::string("dav://… names no host: ") + kAllowed);
  const auto decoded = net::percent_decode(path);
  if (!path.empty() && (!all_of(path, "-_.~%/") || !decoded || !has_good_parts(path) || !has_good_parts(*decoded))) {
    return invalid_field("", "the path of dav://… has parts of letters, digits, '-', '_', '.', '~' and others as %41");
  }
  auto http = HttpTransfers::open(std::move(settings));
  if (!http) return http.error();
  WebdavPlace place{(has_tls ? "https://" : "http://") + std::string(host),
                    path.empty() ? "" : '/' + std::string(path)};
  OpenedStore out;
  out.shown = (has_tls ? "davs://" : "dav://") + std::string(host) + place.path;
  out.store = std::make_unique<WebdavStore>(std::move(place), std::move(*http));
  return out;
}

Result<OpenedStore> open_below(const ObjectStoreConfig& config) {
  const std::string_view url = config.url;
  constexpr std::string_view kS3 = "s3://";
  constexpr std::string_view kDav = "dav://";
  constexpr std::string_view kDavs = "davs://";
  if (url.starts_with(kS3)) return open_s3(config, url.substr(kS3.size()));
  if (url.starts_with(kDav)) return open_webdav(config, url.substr(kDav.size()), false);
  if (url.starts_with(kDavs)) return open_webdav(config, url.substr(kDavs.size()), true);
  if (!url.starts_with('/')) return invalid_field("", kAllowed);
  OpenedStore out;
  out.shown = '/' + std::string(without_slashes(url));
  auto folder = FolderStore::open(out.shown);
  if (!folder) return folder.error();
  out.store = std::move(*folder);
  return out;
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_object_store(const ObjectStoreConfig& config) {
  std::optional<StoreKey> key;
  if (!config.key_file.empty()) {
    auto read = read_store_key(config.key_file);
    if (!read) return read.error();
    key = *read;
  }
  auto below = open_below(config);
  if (!below) return below.error();
  return std::unique_ptr<ObjectStore>(
      std::make_unique<SealedStore>(std::move(below->store), key, std::move(below->shown)));
}

}  // namespace chasqui::store
