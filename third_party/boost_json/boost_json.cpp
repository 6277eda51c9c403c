// Boost.JSON from its headers, for libchasqui.so: distributions compile its archive for programs only.
#include <boost/json/src.hpp>
