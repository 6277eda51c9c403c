// JSON schemas as grammars: what is written compiles, unless it is too large or matches nothing, and what is walked
// through it is JSON.
#include "api/body/fields.h"
#include "api/schema/json_schema.h"
#include "fuzz.h"
#include "model/grammar/automaton.h"
#include "model/grammar/grammar_states.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const TimeLimit limit;
  if (size == 0) return 0;
  const auto value = parse_json(text_of(bytes + 1, size - 1));
  if (!value) return 0;
  const auto written = write_schema_grammar(*value, "schema", bytes[0] % 2 == 1,
                                            (bytes[0] & 2) != 0 ? SchemaOrder::any : SchemaOrder::written);
  if (!written) return must(!written.error().message.empty(), "a refusal says why"), 0;
  const auto read = parse_gbnf(written->text);
  must(read.has_value(), "what is written can be read");
  auto automaton = GrammarAutomaton::compile(*read);
  if (!automaton) return must(!automaton.error().message.empty(), "a refusal says why"), 0;
  GrammarStates states(std::make_shared<const GrammarAutomaton>(std::move(*automaton)));
  GrammarStates::Id state = states.start();
  std::string text;
  std::uint32_t choice = bytes[0];
  for (int step = 0; step < 200 && !states.is_complete(state); ++step) {
    std::string ways;
    for (int byte = 1; byte < 256; ++byte) {
      if (states.next(state, static_cast<std::uint8_t>(byte)) != GrammarStates::kDead) ways += static_cast<char>(byte);
    }
    must(!ways.empty(), "every place leads to an end");
    choice = choice * 1664525 + 1013904223;
    text += ways[(choice >> 16) % ways.size()];
    state = states.next(state, static_cast<std::uint8_t>(text.back()));
  }
  const bool shallow = text.size() < 60;  // bodies are nested less deeply than answers may be
  if (states.is_complete(state) && shallow) must(parse_json(text).has_value(), "what a schema's grammar takes is JSON");
  return 0;
}
