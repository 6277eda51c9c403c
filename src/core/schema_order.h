// In which order an answer has the properties that a JSON Schema declares.
#pragma once

#include <cstdint>

namespace chasqui {

enum class SchemaOrder : std::uint8_t {
  written,  // as the schema names them
  any,      // the model chooses, in objects of a few properties; others keep the schema's order
};

}  // namespace chasqui
