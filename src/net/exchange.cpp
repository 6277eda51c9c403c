#include "net/exchange.h"

#include "base/error.h"

namespace chasqui::net {

const std::string& HttpExchange::param(std::string_view name) const {
  for (const auto& [known, value] : params_) {
    if (known == name) return value;
  }
  check_failed("param exists", __FILE__, __LINE__, name);
}

}  // namespace chasqui::net
