// How refusals of pictures and sounds are worded: they say what is allowed. Pure; any thread.
#pragma once

#include <string>

#include "base/error.h"

namespace chasqui {

inline Error refused_media(std::string why) { return invalid_field("messages", std::move(why)); }

}  // namespace chasqui
