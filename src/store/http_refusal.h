// What an answer of a store means that is not the one that was hoped for. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "store/http_transfers.h"

namespace chasqui::store {

// `store`: for the message, as "the store s3://bucket"; `code`: of an S3 error, empty: none.
// REQUIRES: the status is not 2xx
Error refusal_of(const HttpAnswer& answer, const std::string& store, std::string_view code = {});

// Error answers of S3 have a code, as "NoSuchKey"; empty: it is something else.
std::string s3_code(const HttpAnswer& answer);

}  // namespace chasqui::store
