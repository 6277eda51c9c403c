// Numbers of a schema by their digits. Pure; any thread.
#pragma once

#include <optional>

#include <boost/json.hpp>

#include "model/grammar/number_language.h"

namespace chasqui {

// None: it is no number, or has too many digits.
std::optional<Decimal> decimal_of(const boost::json::value& number);

}  // namespace chasqui
