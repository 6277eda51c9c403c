// JSON schemas: what the check lets through keeps to it when it is checked again. Not so with patterns: what comes out
// has them as llama-common's converter reads them, with \xHH and \UHHHHHHHH in its classes.
#include "api/body/fields.h"
#include "api/schema/schema_check.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const TimeLimit limit;
  const auto value = parse_json(text_of(bytes, size));
  if (!value) return 0;
  const auto checked = check_schema(*value, "schema");
  if (!checked) {
    must(!checked.error().message.empty(), "a refusal says why");
    return 0;
  }
  const boost::json::value safe(*checked);
  if (boost::json::serialize(safe).find("\"pattern\"") != std::string::npos) return 0;
  must(check_schema(safe, "schema").has_value(), "what is good stays good");
  return 0;
}
