// From what an operator says to the store that is meant: a folder, S3 or WebDAV, and the seal around it. Any thread.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "store/object_store.h"

namespace chasqui::store {

struct ObjectStoreConfig {
  // s3://BUCKET[/PREFIX], dav://[USER:PASSWORD@]HOST[:PORT]/PATH, davs://… (over TLS), or a path that begins with '/'.
  std::string url;
  std::string key_file;             // that encrypts the objects; empty: none
  Duration patience = seconds(10);  // without progress
  // The values of variables that other programs for S3 also read; empty: not set.
  std::string aws_access_key_id;
  std::string aws_secret_access_key;
  std::string aws_session_token;
  std::string aws_region;  // empty: us-east-1
  std::string aws_endpoint_url;
  std::string aws_endpoint_url_s3;  // wins
};

// Asks the store nothing yet; but a folder is made. invalid_request, without a field, says what is wrong and what is
// allowed, never a password; not_supported where libcurl is missing.
Result<std::unique_ptr<ObjectStore>> open_object_store(const ObjectStoreConfig& config);

}  // namespace chasqui::store
