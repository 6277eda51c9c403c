// What a client is told of a fault of the shared store or of the table of leases: neither its address nor what it said,
// which are for the log. What is no fault of these, as a conflict, stays as it is. Pure; any thread.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace chasqui {

inline Error in_store_words(Error error) {
  switch (error.code) {
    case ErrorCode::storage_full: error.message = "the shared store is full"; break;
    case ErrorCode::overloaded: error.message = "the shared store is overloaded: retry later"; break;
    case ErrorCode::unavailable:
    case ErrorCode::forbidden:
      error.code = ErrorCode::unavailable;
      error.message = "the shared store does not answer, or not as it should: retry later";
      break;
    default: break;
  }
  return error;
}

}  // namespace chasqui
