#include "pull/curl_library.h"

#include <string>

#include "base/shared_library.h"

namespace chasqui::pull {
namespace {

// The first that keeps a token from another port of the same host, and that takes protocols by their names.
constexpr unsigned kOldest = 0x075500;

Error missing(const std::string& what) {
  return {ErrorCode::not_supported, what + ": install libcurl 7.85 or newer (Debian: libcurl4)", ""};
}

Result<CurlLibrary> load() {
  SharedLibrary library({"libcurl.so.4", "libcurl-gnutls.so.4"});
  CurlLibrary out;
  library.find("curl_global_init", out.global_init);
  library.find("curl_version_info", out.version_info);
  library.find("curl_easy_init", out.easy_init);
  library.find("curl_easy_cleanup", out.easy_cleanup);
  library.find("curl_easy_reset", out.easy_reset);
  library.find("curl_easy_setopt", out.easy_setopt);
  library.find("curl_easy_getinfo", out.easy_getinfo);
  library.find("curl_easy_strerror", out.easy_strerror);
  library.find("curl_multi_init", out.multi_init);
  library.find("curl_multi_cleanup", out.multi_cleanup);
  library.find("curl_multi_add_handle", out.multi_add_handle);
  library.find("curl_multi_remove_handle", out.multi_remove_handle);
  library.find("curl_multi_perform", out.multi_perform);
  library.find("curl_multi_poll", out.multi_poll);
  library.find("curl_multi_info_read", out.multi_info_read);
  library.find("curl_multi_setopt", out.multi_setopt);
  library.find("curl_slist_append", out.slist_append);
  library.find("curl_slist_free_all", out.slist_free_all);
  library.find("curl_url", out.url);
  library.find("curl_url_cleanup", out.url_cleanup);
  library.find("curl_url_get", out.url_get);
  library.find("curl_url_set", out.url_set);
  library.find("curl_free", out.free);
  if (!library.serves()) return missing(library.fault("libcurl"));
  const curl_version_info_data* const version = out.version_info(CURLVERSION_NOW);
  if (version == nullptr || version->version_num < kOldest) {
    return missing("the libcurl of this machine is too old" +
                   (version == nullptr ? std::string() : " (" + std::string(version->version) + ')'));
  }
  if (out.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return missing("the libcurl of this machine does not start");
  return out;
}

}  // namespace

Result<const CurlLibrary*> curl_library() { return loaded_once(load); }

}  // namespace chasqui::pull
