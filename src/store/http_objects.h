// Objects of a store behind HTTP by their names, where each has an address of its own: what reading and removing are in
// S3 and in WebDAV alike. Owned by the call; the thread of the store.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "store/http_transfers.h"
#include "store/object_store.h"

namespace chasqui::store {

inline bool is_success(const HttpAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

struct HttpObjects {
  HttpExchanges& http;
  std::function<std::string(const std::string& name)> url_of;
  std::function<Error(const HttpAnswer&)> refusal;  // not_found: the store says that there is no such object

  // As of ObjectStore.
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) const;
  ObjectStore::Outcomes remove(std::span<const std::string> names) const;

 private:
  std::vector<HttpAnswer> ask(const char* method, std::span<const std::string> names, std::size_t most) const;
};

}  // namespace chasqui::store
