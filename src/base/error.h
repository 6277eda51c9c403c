// Errors as values. The world said no: Result<T>. A bug in us: CHECK, which logs and aborts, in release builds too.
// Any thread. Cancellation and deadlines are not errors but finish reasons (core/event.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/clock.h"

namespace chasqui {

// Closed list; the enumerator's name is also the metric label and the log field. api/errors.h maps each to an HTTP
// status, an API error type and a frame code; its switch has no default, so a new code cannot be forgotten there.
enum class ErrorCode {
  invalid_request,   // the client must change the request
  context_too_long,  // the prompt does not fit the context of a slot
  unauthorized,      // no key, or an unknown one
  forbidden,         // known, but not allowed
  not_found,         // no such route, model, session
  conflict,          // the object is in use
  too_large,         // a body or header over its limit
  quota_exceeded,    // this tenant's limit: retry later
  overloaded,        // this node's limit: retry later or elsewhere
  unavailable,       // starting or draining: retry elsewhere
  model_failure,     // decoding failed; this request is lost, others are not
  not_supported,     // the server was started without it, or cannot do it
  storage_full,      // the disk has no room: retry when it has
  internal,          // a fault in us that we survived
};

std::string_view name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;     // a sentence for the client: what was wrong and what is allowed
  std::string field;       // the request field at fault, empty when there is none
  Duration retry_after{};  // when trying again makes sense; zero: not known, or never
  // Of context_too_long: tokens of the prompt, and of the context; 0: not known.
  std::int64_t prompt_tokens = 0;
  std::int64_t context_tokens = 0;
};

inline Error invalid_field(std::string field, std::string message) {
  return Error{ErrorCode::invalid_request, std::move(message), std::move(field)};
}

// A value or an Error. Method names follow std::expected so that it can replace this class one day.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value()
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !has_value()
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: !has_value()
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// Logs the failed condition with its place and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string_view note);

}  // namespace chasqui

#define CHECK(condition, ...)                                                                 \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::chasqui::check_failed(#condition, __FILE__, __LINE__, std::string_view{__VA_ARGS__}); \
  } while (false)

#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (false)
#else
#define DCHECK(condition, ...) CHECK(condition, __VA_ARGS__)
#endif
