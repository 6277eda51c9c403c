#include "net/digest.h"

#include <array>

#include <openssl/evp.h>

#include "base/error.h"

namespace chasqui::net {

struct Digest::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> sums{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Digest::Digest(Kind kind) : state_(std::make_unique<State>()) {
  const EVP_MD* const wanted = kind == Kind::sha256 ? EVP_sha256() : EVP_sha1();
  CHECK(state_->sums != nullptr && EVP_DigestInit_ex(state_->sums.get(), wanted, nullptr) == 1, "libcrypto has it");
}

Digest::~Digest() = default;
Digest::Digest(Digest&& other) noexcept = default;
Digest& Digest::operator=(Digest&& other) noexcept = default;

void Digest::add(std::string_view bytes) { EVP_DigestUpdate(state_->sums.get(), bytes.data(), bytes.size()); }

std::string Digest::hex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->sums.get(), bytes.data(), &size);
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

}  // namespace chasqui::net
