// Objects in a bucket of S3, or of what speaks like it (MinIO, Ceph, Garage …). Buckets are a part of the path, not of
// the host's name, so that any endpoint will do. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/http_objects.h"
#include "store/http_transfers.h"
#include "store/object_store.h"

namespace chasqui::store {

struct S3Place {
  std::string endpoint;  // "https://s3.eu-west-1.amazonaws.com": no slash at its end
  std::string bucket;
  std::string prefix;  // before each name, as "nodes/"; empty, or with a slash at its end
};

class S3Store final : public ObjectStore {
 public:
  S3Store(S3Place place, std::unique_ptr<HttpExchanges> http);

  Outcomes put(std::span<const StoredObject> objects) override;
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override;
  Outcomes remove(std::span<const std::string> names) override;
  Result<std::vector<std::string>> list(const std::string& folder, std::size_t most) override;

 private:
  std::string url_of(const std::string& name) const;
  std::string list_url(const std::string& before, const std::string& token) const;
  HttpObjects objects();
  Error refusal(const HttpAnswer& answer) const;
  Error nonsense(const std::string& why) const;
  // Adds the names of a page, which come behind `before`. The token of the next one; empty: it was the last.
  Result<std::string> read_page(const HttpAnswer& answer, const std::string& before,
                                std::vector<std::string>& names) const;

  const S3Place place_;
  const std::string shown_;
  const std::unique_ptr<HttpExchanges> http_;
};

}  // namespace chasqui::store
