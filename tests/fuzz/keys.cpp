// Files of keys.
#include "api/core/key_list.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const auto lines = parse_keys({}, "keys", text_of(bytes, size));
  if (!lines) {
    must(!lines.error().message.empty(), "a refusal says why");
    return 0;
  }
  for (const KeyLine& line : *lines) {
    must(!line.tenant.empty(), "each key has a tenant");
    must(!line.weight || *line.weight > 0, "weights are positive");
  }
  return 0;
}
