// The file of settings.
#include "app/toml_file.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const auto items = read_toml(text_of(bytes, size), "serve");
  must(items.has_value() || !items.error().message.empty(), "a refusal says why");
  return 0;
}
