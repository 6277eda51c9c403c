#include "app/value_origin.h"

namespace chasqui {

std::string origin_note(const ValueOrigins& origins, const std::string& option) {
  const auto found = origins.find(option);
  return found == origins.end() ? std::string() : " (" + found->second + ")";
}

Error with_origin(Error error, const ValueOrigins& origins) {
  error.message += origin_note(origins, error.field);
  return error;
}

std::string option_in(std::string_view message) {
  const std::size_t begin = message.find("--");
  if (begin == std::string_view::npos) return {};
  message.remove_prefix(begin);
  return std::string(message.substr(0, message.find_first_of(":= ")));
}

}  // namespace chasqui
