#include "model/content_hash.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace chasqui {

ContentHash content_hash(std::string_view bytes) {
  ContentHash hash{};
  CHECK(EVP_Digest(bytes.data(), bytes.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1,
        "libcrypto has SHA-256");
  return hash;
}

std::string in_hex(const ContentHash& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : hash) out += {kDigits[byte >> 4], kDigits[byte & 15]};
  return out;
}

}  // namespace chasqui
