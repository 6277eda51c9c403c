// Variables of the environment. Free functions, called while the program starts and no other thread runs.
#pragma once

#include <cstdlib>
#include <string>

namespace chasqui {

// Null: it is not set.
inline const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing runs yet
}

// Empty: it is not set, or to nothing.
inline std::string variable_text(const char* name) {
  const char* const value = variable(name);
  return value == nullptr ? "" : value;
}

}  // namespace chasqui
