// Around any other store: what comes back is what was written under that name, or an error. Without a key a checksum
// finds what was damaged, cut or exchanged by accident. With a key each object is encrypted with AES-256-GCM, which
// also finds what was changed on purpose; names and sizes stay visible. One thread at a time, as the store below.
//
// An object: a header (magic, version, kind, the name, the size, what the key is checked by, a salt, the header's
// checksum), then its bytes with a checksum, or chunks of 1 MiB, each with its tag. Each object has a key of its own,
// made of the store's and the salt, so that no nonce ever occurs twice; a chunk's nonce says its number and whether it
// is the last, and the header is authenticated with each.
//
// Errors: unavailable for what "is not what was written", forbidden where it was written with another key, or with one
// and there is none here, or without one and there is one here.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/object_store.h"

namespace chasqui::store {

using StoreKey = std::array<unsigned char, 32>;

// A file with 64 hexadecimal digits, and perhaps a line end, that others cannot read (chmod o-rwx). invalid_request,
// without a field, says what is wrong with it.
Result<StoreKey> read_store_key(const std::string& path);

// The bytes as they are stored. About as much memory again.
std::vector<std::byte> sealed(const StoredObject& object, const std::optional<StoreKey>& key);
// In place.
Result<std::vector<std::byte>> unsealed(const std::string& name, std::vector<std::byte> bytes,
                                        const std::optional<StoreKey>& key);

class SealedStore final : public ObjectStore {
 public:
  // `shown`: what messages call the store below.
  SealedStore(std::unique_ptr<ObjectStore> below, std::optional<StoreKey> key, std::string shown);
  ~SealedStore() override;

  Outcomes put(std::span<const StoredObject> objects) override;
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override;
  Outcomes remove(std::span<const std::string> names) override { return below_->remove(names); }
  Result<std::vector<std::string>> list(const std::string& folder, std::size_t most) override {
    return below_->list(folder, most);
  }

 private:
  const std::unique_ptr<ObjectStore> below_;
  std::optional<StoreKey> key_;
  const std::string shown_;
};

}  // namespace chasqui::store
