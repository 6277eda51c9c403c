#include "net/http_headers.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"

namespace chasqui::net {

HttpHeaders::HttpHeaders(std::initializer_list<Field> fields) {
  for (const auto& [name, value] : fields) add(name, value);
}

void HttpHeaders::add(std::string_view name, std::string_view value) {
  const Place place{static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(name.size()),
                    static_cast<std::uint32_t>(value.size())};
  text_.append(name).append(value);
  std::replace_if(
      text_.begin() + place.start, text_.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
  places_.push_back(place);
}

void HttpHeaders::set(std::string_view name, std::string_view value) {
  // The text of what is replaced stays behind as a gap; headers are few and short-lived.
  const std::string kept_name(name), kept_value(value);  // either may be a view into this object
  std::erase_if(places_, [&](const Place& place) {
    return equals_ignoring_case(std::string_view(text_).substr(place.start, place.name_size), kept_name);
  });
  add(kept_name, kept_value);
}

HttpHeaders::Field HttpHeaders::operator[](std::size_t i) const {
  CHECK(i < places_.size());
  const Place& place = places_[i];
  const std::string_view text(text_);
  return {text.substr(place.start, place.name_size), text.substr(place.start + place.name_size, place.value_size)};
}

std::optional<std::string_view> HttpHeaders::get(std::string_view name) const {
  for (std::size_t i = 0; i < size(); ++i) {
    const auto [field, value] = (*this)[i];
    if (equals_ignoring_case(field, name)) return value;
  }
  return std::nullopt;
}

std::size_t HttpHeaders::count(std::string_view name) const { return all(name).size(); }

std::vector<std::string_view> HttpHeaders::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto [field, value] = (*this)[i];
    if (equals_ignoring_case(field, name)) values.push_back(value);
  }
  return values;
}

}  // namespace chasqui::net
