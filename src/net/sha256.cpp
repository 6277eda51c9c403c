#include "net/sha256.h"

#include <memory>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/error.h"

namespace chasqui::net {

Sha256 sha256(std::initializer_list<std::string_view> parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  CHECK(state != nullptr && EVP_DigestInit_ex(state.get(), EVP_sha256(), nullptr) == 1, "libcrypto has SHA-256");
  for (const std::string_view part : parts) EVP_DigestUpdate(state.get(), part.data(), part.size());
  Sha256 digest{};
  EVP_DigestFinal_ex(state.get(), digest.data(), nullptr);
  return digest;
}

bool equal_in_constant_time(const Sha256& a, const Sha256& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace chasqui::net
