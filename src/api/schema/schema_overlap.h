// Whether a value could fit two schemas: oneOf is kept only where it is clear that none does. Pure.
#pragma once

#include <boost/json.hpp>

namespace chasqui {

// What a schema is after its references into `root`; null when they lead nowhere.
const boost::json::object* resolved(const boost::json::value& root, const boost::json::value& schema);

// Sure that no value fits both: other types, other values, or a property that both require with other values.
bool cannot_both_fit(const boost::json::value& root, const boost::json::object& a, const boost::json::object& b);

}  // namespace chasqui
