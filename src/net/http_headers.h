// Header fields in the order of the message: small, in two allocations, looked up without regard to case. Used for
// requests and responses. A plain value; any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chasqui::net {

class HttpHeaders {
 public:
  using Field = std::pair<std::string_view, std::string_view>;

  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<Field> fields);

  // Appends a field. Fields of one name may repeat. CR, LF and NUL in a value become spaces, so that nothing that
  // came from a client can split a response.
  void add(std::string_view name, std::string_view value);
  // Replaces all fields of this name by one.
  void set(std::string_view name, std::string_view value);

  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  // Views are valid until the next add() or set(), and do not survive a move.
  Field operator[](std::size_t i) const;

  // The first field of this name.
  std::optional<std::string_view> get(std::string_view name) const;
  bool has(std::string_view name) const { return get(name).has_value(); }
  std::size_t count(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;

 private:
  struct Place {
    std::uint32_t start, name_size, value_size;
  };

  std::string text_;  // name, value, name, value …
  std::vector<Place> places_;
};

}  // namespace chasqui::net
