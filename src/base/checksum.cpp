#include "base/checksum.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chasqui {
namespace {

Checksum to_bytes(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Checksum out;
  static_assert(sizeof canonical.digest == sizeof(Checksum));
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

}  // namespace

Checksum checksum(std::span<const std::byte> bytes) { return to_bytes(XXH3_128bits(bytes.data(), bytes.size())); }

struct Checksummer::State {
  XXH3_state_t xxh;
};

Checksummer::Checksummer() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Checksummer::~Checksummer() = default;
Checksummer::Checksummer(Checksummer&&) noexcept = default;
Checksummer& Checksummer::operator=(Checksummer&&) noexcept = default;

void Checksummer::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Checksum Checksummer::result() const { return to_bytes(XXH3_128bits_digest(&state_->xxh)); }

}  // namespace chasqui
