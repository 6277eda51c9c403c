// Texts of grammars, as they are looked at before llama.cpp compiles them.
#include "fuzz.h"
#include "model/grammar_shape.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const TimeLimit limit;
  const auto shape = check_grammar_shape(text_of(bytes, size));
  must(shape.has_value() || !shape.error().message.empty(), "a refusal says why");
  return 0;
}
