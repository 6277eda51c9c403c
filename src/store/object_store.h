// Named objects that several nodes share: each is there whole or not at all, and a name is written once and never again
// with other bytes. The implementations are a folder that all nodes mount, S3 and WebDAV; store/sealed_store.h puts
// checksums or encryption around one of them. What a store says is never believed without that.
//
// Calls block, at most so long as the store's patience allows for each object. One thread at a time; a process opens
// one for each thread that uses it.
//
// Names are parts of a-z, 0-9, A-Z, '_' and '-' with '/' between them: "sessions/sess_k3…/00000002-00000000". A part
// has up to 128 characters, a name up to 512, and none is the folder of another.
//
// Errors: not_found, storage_full (no room), forbidden (credentials), conflict (another key, or none), overloaded (asks
// to be left alone for a while), unavailable (no answer, a half answer, or one that makes no sense), invalid_request (a
// name that is none, or what is there is not what was put there). They name the store and never its credentials.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace chasqui::store {

struct StoredObject {
  std::string name;
  std::vector<std::byte> bytes;
};

class ObjectStore {
 public:
  using Outcomes = std::vector<std::optional<Error>>;  // one for each that was asked for, in that order

  virtual ~ObjectStore() = default;

  // Acknowledged objects are durable, as far as the store keeps its word.
  virtual Outcomes put(std::span<const StoredObject> objects) = 0;
  // unavailable for one of over `most` bytes, of which no more are held.
  virtual std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) = 0;
  // Also those that are not there.
  virtual Outcomes remove(std::span<const std::string> names) = 0;
  // Whole names of what is directly in a folder ("sessions/sess_k3…"), sorted: objects and folders; none where there is
  // no such folder. "" is the store itself. Where folders cannot be removed (WebDAV), also those that nothing is left
  // in. unavailable where there are more than so many.
  virtual Result<std::vector<std::string>> list(const std::string& folder, std::size_t most) = 0;
};

}  // namespace chasqui::store
