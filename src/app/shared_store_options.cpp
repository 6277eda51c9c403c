#include "app/shared_store_options.h"

#include <algorithm>
#include <utility>

#include "app/environment.h"
#include "app/option_kinds.h"
#include "base/ascii.h"
#include "base/random_bits.h"
#include "base/random_id.h"
#include "store/redis_leases.h"
#include "store/shared_sessions.h"
#include "store/shared_snapshots.h"

namespace chasqui {
namespace {

// What a URL says of a user goes into no message.
std::string without_login(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.rfind('@');
  if (scheme == std::string::npos || at == std::string::npos || at < scheme) return url;
  return url.substr(0, scheme + 3) + url.substr(at + 1);
}

Error of_flag(const std::string& flag, Error error) {
  error.message = flag + ": " + error.message;
  error.field = flag;
  return error;
}

}  // namespace

void add_shared_store_options(CLI::App& app, SharedStoreFlags& flags) {
  app.option_defaults()->group("What nodes share");
  app.add_option("--shared-store", flags.objects.url,
                 "keeps sessions and prefixes for all nodes: s3://BUCKET[/PREFIX], "
                 "dav[s]://[USER:PASSWORD@]HOST/PATH, or a folder that all mount")
      ->envname("CHASQUI_SHARED_STORE")
      ->type_name("URL");
  app.add_option("--shared-store-key", flags.objects.key_file,
                 "file with the key that encrypts what is kept there: 64 hexadecimal digits, the same for all nodes")
      ->envname("CHASQUI_SHARED_STORE_KEY")
      ->type_name("FILE");
  add_seconds(app, "--shared-store-timeout", flags.objects.patience,
              "time without an answer after which the store, or Redis, counts as down")
      ->envname("CHASQUI_SHARED_STORE_TIMEOUT")
      ->check(CLI::Range(1.0, 600.0));
  app.add_option("--shared-cache-mib", flags.cache_mib,
                 "MiB of prefixes that nodes with --cache-disk share there, the same for all nodes; 0: none")
      ->envname("CHASQUI_SHARED_CACHE_MIB")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  app.add_option("--session-leases", flags.leases,
                 "says which node has which session: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or unix:///PATH")
      ->envname("CHASQUI_SESSION_LEASES")
      ->type_name("URL");
}

Result<void> complete_shared_store(SharedStoreFlags& flags, const std::string& session_dir) {
  if (!flags.wanted()) {
    if (flags.objects.key_file.empty()) return {};
    return invalid_field("--shared-store-key", "--shared-store-key encrypts what --shared-store keeps: give both");
  }
  if (flags.objects.url.empty() || flags.leases.empty()) {
    return invalid_field(flags.leases.empty() ? "--shared-store" : "--session-leases",
                         "--shared-store keeps the sessions and --session-leases says whose they are: give both");
  }
  if (!session_dir.empty()) {
    return invalid_field("--session-dir", "sessions are kept by --session-dir or by --shared-store, not by both");
  }
  flags.objects.aws_access_key_id = variable_text("AWS_ACCESS_KEY_ID");
  flags.objects.aws_secret_access_key = variable_text("AWS_SECRET_ACCESS_KEY");
  flags.objects.aws_session_token = variable_text("AWS_SESSION_TOKEN");
  flags.objects.aws_region = variable_text("AWS_REGION");
  flags.objects.aws_endpoint_url = variable_text("AWS_ENDPOINT_URL");
  flags.objects.aws_endpoint_url_s3 = variable_text("AWS_ENDPOINT_URL_S3");
  if (auto opened = open_shared_sessions(flags, "", {}); !opened) return opened.error();
  return {};
}

Result<std::shared_ptr<SharedSessionStore>> open_shared_sessions(const SharedStoreFlags& flags, const std::string& root,
                                                                 const Checksum& vocabulary) {
  const auto address = store::read_redis_address(flags.leases);
  if (!address) return of_flag("--session-leases", address.error());
  const std::string node = random_id("node_");
  const std::string scope = root.empty() ? root : root + ':';
  const Duration patience = std::min(flags.objects.patience, Duration(seconds(3)));  // it answers in a millisecond
  store::SharedSessionsParts parts;
  parts.claims = std::make_unique<store::RedisLeases>(*address, patience, node, scope);
  parts.leases = std::make_unique<store::RedisLeases>(*address, patience, node, scope);
  for (std::unique_ptr<store::ObjectStore>* objects : {&parts.objects, &parts.kv_objects}) {
    auto opened = store::open_object_store(flags.objects);
    if (!opened) return of_flag("--shared-store", opened.error());
    *objects = std::move(*opened);
  }
  store::SharedSessionsConfig config{.place = without_login(flags.objects.url),
                                     .root = root,
                                     .vocabulary = vocabulary,
                                     .writer = static_cast<std::uint32_t>(RandomBits()())};
  return std::shared_ptr<SharedSessionStore>(
      std::make_shared<store::SharedSessions>(std::move(config), std::move(parts)));
}

Result<SharedSnapshotStores> open_shared_snapshots(const SharedStoreFlags& flags, const ModelIdentity& identity) {
  SharedSnapshotStores out;
  if (flags.cache_mib == 0) return out;
  out.bytes = static_cast<std::uint64_t>(flags.cache_mib) << 20;
  for (std::shared_ptr<SharedSnapshotStore>* store : {&out.index, &out.reads}) {
    auto opened = store::open_object_store(flags.objects);
    if (!opened) return of_flag("--shared-store", opened.error());
    *store = std::make_shared<store::SharedSnapshots>(std::move(*opened), identity, without_login(flags.objects.url));
  }
  return out;
}

std::string shared_root_of(const std::string& model) {
  std::string out;
  for (const char c : model) out += is_ascii_word_or("-", c) ? c : '_';
  constexpr std::string_view kDigits = "0123456789abcdef";
  const Checksum sum = checksum(std::as_bytes(std::span(model)));
  out += '-';
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = std::to_integer<unsigned>(sum[i]);
    out += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

}  // namespace chasqui
