#include "store/sealed_store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include "base/ascii.h"
#include "base/checksum.h"
#include "base/text_file.h"
#include "store/object_name.h"

namespace chasqui::store {
namespace {

constexpr std::string_view kMagic = "chasqui\x1a";
constexpr std::byte kVersion{1};
enum class SealKind : unsigned char { checksum = 0, aes_256_gcm = 1 };

constexpr std::size_t kSumBytes = sizeof(Checksum);
constexpr std::size_t kProofBytes = 16;
constexpr std::size_t kSaltBytes = 32;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kChunk = std::size_t{1} << 20;
// Magic, version, kind, length of the name, size.
constexpr std::size_t kFixed = kMagic.size() + 1 + 1 + 2 + 8;

using Digest = std::array<unsigned char, 32>;
using CipherPtr = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

// At least one, so that an empty object has a tag, too.
std::size_t chunks_of(std::size_t bytes) { return bytes == 0 ? 1 : (bytes - 1) / kChunk + 1; }

std::size_t header_bytes(std::size_t name, bool has_key) {
  return kFixed + name + (has_key ? kProofBytes + kSaltBytes : kSumBytes) + kSumBytes;
}
std::size_t sealed_bytes(std::size_t name, std::size_t bytes, bool has_key) {
  return header_bytes(name, has_key) + bytes + (has_key ? chunks_of(bytes) * kTagBytes : 0);
}

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

Digest keyed(const StoreKey& key, std::string_view purpose, std::span<const std::byte> more = {}) {
  std::string text(purpose);
  text.append(reinterpret_cast<const char*>(more.data()), more.size());
  Digest out{};
  std::size_t size = 0;
  const unsigned char* const made =
      EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key.data(), key.size(),
                reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), out.size(), &size);
  CHECK(made != nullptr && size == out.size(), "libcrypto has HMAC");
  return out;
}
Digest proof_of(const StoreKey& key) { return keyed(key, "chasqui store: which key"); }

// Of one object.
class ChunkCipher {
 public:
  ChunkCipher(const StoreKey& key, std::span<const std::byte> salt, std::span<const std::byte> header, bool encrypts)
      : cipher_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free), header_(header), encrypts_(encrypts) {
    CHECK(cipher_ != nullptr, "libcrypto has memory");
    Digest own = keyed(key, "chasqui store: object", salt);
    CHECK(EVP_CipherInit_ex(cipher_.get(), EVP_aes_256_gcm(), nullptr, own.data(), nullptr, encrypts ? 1 : 0) == 1,
          "libcrypto has AES-256-GCM");
    OPENSSL_cleanse(own.data(), own.size());
  }

  // In place; `tag` is written, or checked: false, it is not of these bytes.
  bool run(std::size_t index, bool is_last, std::span<std::byte> bytes, std::byte* tag) {
    std::array<unsigned char, kNonceBytes> nonce{};
    for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(index >> (8 * i));
    nonce[8] = is_last ? 1 : 0;
    int size = 0;
    const auto length = static_cast<int>(bytes.size());  // a chunk's
    EVP_CIPHER_CTX* const cipher = cipher_.get();
    bool ok = EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, nonce.data(), -1) == 1 &&
              EVP_CipherUpdate(cipher, nullptr, &size, raw(header_.data()), static_cast<int>(header_.size())) == 1;
    if (!encrypts_) ok = ok && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag) == 1;
    ok = ok && (bytes.empty() || EVP_CipherUpdate(cipher, raw(bytes.data()), &size, raw(bytes.data()), length) == 1);
    std::array<unsigned char, kTagBytes> rest{};
    ok = ok && EVP_CipherFinal_ex(cipher, rest.data(), &size) == 1;
    if (encrypts_) {
      ok = ok && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag) == 1;
      CHECK(ok, "libcrypto encrypts");
    }
    return ok;
  }

 private:
  const CipherPtr cipher_;
  const std::span<const std::byte> header_;
  const bool encrypts_;
};

void append(std::vector<std::byte>& out, const void* from, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(from);
  out.insert(out.end(), first, first + bytes);
}
template <class Number>
void append_number(std::vector<std::byte>& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<std::byte>(number >> (8 * i)));
}
template <class Number>
Number number_at(std::span<const std::byte> bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) out |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return static_cast<Number>(out);
}

Error damaged(const std::string& name) {
  return {ErrorCode::invalid_request, "the object " + name + " is not what was written", ""};
}
Error of_another_key(const std::string& name, const std::string& how) {
  return {ErrorCode::conflict, "the object " + name + " was written " + how, ""};
}

struct SealHeader {
  SealKind kind{};
  std::size_t bytes = 0;  // of the object
  std::span<const std::byte> whole;
  std::span<const std::byte> special;  // the checksum; or the key's proof and the salt
};

std::optional<SealHeader> read_header(const std::string& name, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes.size() < kFixed || !text.starts_with(kMagic) || bytes[kMagic.size()] != kVersion) return std::nullopt;
  SealHeader out;
  const auto kind = std::to_integer<unsigned>(bytes[kMagic.size() + 1]);
  if (kind > 1) return std::nullopt;
  out.kind = static_cast<SealKind>(kind);
  const bool has_key = out.kind == SealKind::aes_256_gcm;
  const std::size_t length = number_at<std::uint16_t>(bytes.subspan(kMagic.size() + 2));
  const auto size = number_at<std::uint64_t>(bytes.subspan(kMagic.size() + 4));
  if (length != name.size() || size > bytes.size() || bytes.size() != sealed_bytes(length, size, has_key)) {
    return std::nullopt;
  }
  if (text.substr(kFixed, length) != name) return std::nullopt;
  out.bytes = size;
  out.whole = bytes.first(header_bytes(length, has_key));
  out.special = out.whole.subspan(kFixed + length, has_key ? kProofBytes + kSaltBytes : kSumBytes);
  const auto before = out.whole.first(out.whole.size() - kSumBytes);
  return std::ranges::equal(checksum(before), out.whole.last(kSumBytes)) ? std::optional(out) : std::nullopt;
}

// Moves each chunk to where it belongs, and decrypts it there.
bool decrypt(std::vector<std::byte>& bytes, const SealHeader& header, const StoreKey& key) {
  const std::vector<std::byte> kept(header.whole.begin(), header.whole.end());  // its place gets the first chunk
  ChunkCipher cipher(key, header.special.subspan(kProofBytes), kept, false);
  const std::size_t size = header.bytes;
  std::size_t from = kept.size();
  for (std::size_t i = 0, to = 0; i < chunks_of(size); ++i) {
    const std::size_t part = std::min(kChunk, size - to);
    std::array<std::byte, kTagBytes> tag{};
    std::memcpy(tag.data(), bytes.data() + from + part, kTagBytes);
    if (part > 0) std::memmove(bytes.data() + to, bytes.data() + from, part);
    if (!cipher.run(i, i + 1 == chunks_of(size), std::span(bytes).subspan(to, part), tag.data())) return false;
    from += part + kTagBytes;
    to += part;
  }
  bytes.resize(size);
  return true;
}

}  // namespace

Result<StoreKey> read_store_key(const std::string& path) {
  const auto refused = [&path](const std::string& why) {
    return invalid_field("", "the key file " + path + ' ' + why);
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return refused(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refused("is not a file");
  if ((status.st_mode & 07) != 0) return refused("is open to all: others may not read it (chmod o-rwx)");
  auto text = read_text_file(path, 2 * sizeof(StoreKey) + 2);
  if (!text) return refused("cannot be read");
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  StoreKey key{};
  bool ok = text->size() == 2 * key.size();
  for (std::size_t i = 0; ok && i < text->size(); ++i) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(in_small_letters((*text)[i]));
    ok = digit != std::string_view::npos;
    if (ok) key[i / 2] = static_cast<unsigned char>(key[i / 2] << 4 | digit);
  }
  OPENSSL_cleanse(text->data(), text->size());
  if (!ok) return refused("does not have 64 hexadecimal digits, as `openssl rand -hex 32` writes them");
  return key;
}

std::vector<std::byte> sealed(const StoredObject& object, const std::optional<StoreKey>& key) {
  const std::size_t size = object.bytes.size();
  std::vector<std::byte> out;
  out.reserve(sealed_bytes(object.name.size(), size, key.has_value()));
  append(out, kMagic.data(), kMagic.size());
  out.push_back(kVersion);
  out.push_back(static_cast<std::byte>(key ? SealKind::aes_256_gcm : SealKind::checksum));
  append_number(out, static_cast<std::uint16_t>(object.name.size()));
  append_number(out, std::uint64_t{size});
  append(out, object.name.data(), object.name.size());
  if (!key) {
    append(out, checksum(object.bytes).data(), kSumBytes);
    append(out, checksum(out).data(), kSumBytes);
    append(out, object.bytes.data(), size);
    return out;
  }
  append(out, proof_of(*key).data(), kProofBytes);
  std::array<unsigned char, kSaltBytes> salt{};
  CHECK(RAND_bytes(salt.data(), kSaltBytes) == 1, "libcrypto has random bytes");
  append(out, salt.data(), kSaltBytes);
  append(out, checksum(out).data(), kSumBytes);
  const std::vector<std::byte> header = out;
  ChunkCipher cipher(*key, std::as_bytes(std::span(salt)), header, true);
  for (std::size_t i = 0, from = 0; i < chunks_of(size); ++i) {
    const std::size_t part = std::min(kChunk, size - from);
    const std::size_t to = out.size();
    append(out, object.bytes.data() + from, part);
    std::array<std::byte, kTagBytes> tag{};
    cipher.run(i, i + 1 == chunks_of(size), std::span(out).subspan(to, part), tag.data());
    append(out, tag.data(), kTagBytes);
    from += part;
  }
  return out;
}

Result<std::vector<std::byte>> unsealed(const std::string& name, std::vector<std::byte> bytes,
                                        const std::optional<StoreKey>& key) {
  const auto header = read_header(name, bytes);
  if (!header) return damaged(name);
  if (header->kind == SealKind::checksum) {
    if (key) return of_another_key(name, "without a key, and this node has one");
    const auto content = std::span<const std::byte>(bytes).subspan(header->whole.size());
    if (!std::ranges::equal(checksum(content), header->special)) return damaged(name);
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header->whole.size()));
    return bytes;
  }
  if (!key) return of_another_key(name, "with a key, and this node has none");
  const Digest proof = proof_of(*key);
  if (std::memcmp(proof.data(), header->special.data(), kProofBytes) != 0) {
    return of_another_key(name, "with another key than this node has");
  }
  if (!decrypt(bytes, *header, *key)) return damaged(name);
  return bytes;
}

SealedStore::SealedStore(std::unique_ptr<ObjectStore> below, std::optional<StoreKey> key, std::string shown)
    : below_(std::move(below)), key_(std::move(key)), shown_(std::move(shown)) {}

SealedStore::~SealedStore() {
  if (key_) OPENSSL_cleanse(key_->data(), key_->size());
}

ObjectStore::Outcomes SealedStore::put(std::span<const StoredObject> objects) {
  std::vector<StoredObject> below;
  for (const StoredObject& object : objects) {
    // What has no name is refused below, and a length that the header cannot say is not written.
    const bool can_be = is_object_name(object.name);
    below.push_back({object.name, can_be ? sealed(object, key_) : std::vector<std::byte>()});
  }
  return below_->put(below);
}

std::vector<Result<std::vector<std::byte>>> SealedStore::get(std::span<const std::string> names, std::size_t most) {
  const std::size_t room = std::numeric_limits<std::size_t>::max() / 2;
  const std::size_t below_most = sealed_bytes(kNameMax, std::min(most, room), key_.has_value());
  std::vector<Result<std::vector<std::byte>>> out;
  for (auto& got : below_->get(names, below_most)) {
    const std::string& name = names[out.size()];
    if (!got) {
      out.push_back(got.error());
      continue;
    }
    auto bytes = unsealed(name, std::move(*got), key_);
    if (bytes && bytes->size() > most) {
      bytes =
          Error{ErrorCode::unavailable, "the object " + name + " has more than " + std::to_string(most) + " bytes", ""};
    }
    if (!bytes) {
      Error error = bytes.error();
      error.message = "the store " + shown_ + ": " + error.message;
      bytes = std::move(error);
    }
    out.push_back(std::move(bytes));
  }
  return out;
}

}  // namespace chasqui::store
