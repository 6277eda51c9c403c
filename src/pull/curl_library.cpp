#include "pull/curl_library.h"

#include <string>

#include <dlfcn.h>

namespace chasqui::pull {
namespace {

// The first that keeps a token from another port of the same host, and that takes protocols by their names.
constexpr unsigned kOldest = 0x075500;

Error missing(const std::string& what) {
  return {ErrorCode::not_supported, what + ": install libcurl 7.85 or newer (Debian: libcurl4)", ""};
}

void* open_any() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

Result<CurlLibrary> load() {
  void* const library = open_any();  // stays loaded: others may hold what it has registered
  if (library == nullptr) return missing("there is no libcurl on this machine");
  CurlLibrary out;
  const bool complete =
      find(library, "curl_global_init", out.global_init) && find(library, "curl_version_info", out.version_info) &&
      find(library, "curl_easy_init", out.easy_init) && find(library, "curl_easy_cleanup", out.easy_cleanup) &&
      find(library, "curl_easy_reset", out.easy_reset) && find(library, "curl_easy_setopt", out.easy_setopt) &&
      find(library, "curl_easy_getinfo", out.easy_getinfo) && find(library, "curl_easy_strerror", out.easy_strerror) &&
      find(library, "curl_multi_init", out.multi_init) && find(library, "curl_multi_cleanup", out.multi_cleanup) &&
      find(library, "curl_multi_add_handle", out.multi_add_handle) &&
      find(library, "curl_multi_remove_handle", out.multi_remove_handle) &&
      find(library, "curl_multi_perform", out.multi_perform) && find(library, "curl_multi_poll", out.multi_poll) &&
      find(library, "curl_multi_info_read", out.multi_info_read) &&
      find(library, "curl_multi_setopt", out.multi_setopt) && find(library, "curl_url", out.url) &&
      find(library, "curl_url_cleanup", out.url_cleanup) && find(library, "curl_url_get", out.url_get) &&
      find(library, "curl_url_set", out.url_set) && find(library, "curl_free", out.free);
  const curl_version_info_data* const version = complete ? out.version_info(CURLVERSION_NOW) : nullptr;
  if (version == nullptr || version->version_num < kOldest) {
    return missing("the libcurl of this machine is too old" +
                   (version == nullptr ? std::string() : " (" + std::string(version->version) + ')'));
  }
  if (out.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return missing("the libcurl of this machine does not start");
  return out;
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Result<CurlLibrary> library = load();
  if (!library) return library.error();
  return &library.value();
}

}  // namespace chasqui::pull
