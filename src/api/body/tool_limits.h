// The tools of a request, in whatever dialect, before they are read: as many as are of use, and with parameters whose
// grammar can be made. The converter of llama-common takes time that grows with the square of an object's properties
// (ten seconds for two thousand), copies a schema for each type that it lists, and recurses for each byte of a name and
// each $ref. Pure; offload pool.
#pragma once

#include <boost/json.hpp>

#include "api/body/fields.h"

namespace chasqui {

// The array in `name`; null where there is none, and where it was refused.
const boost::json::array* tools_within_limits(Fields& fields, std::string_view name = "tools");

}  // namespace chasqui
