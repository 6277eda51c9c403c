// For the tests of this folder: which texts the grammar of a schema takes, and which it refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "api/schema/json_schema.h"
#include "model/grammar/automaton.h"
#include "model/grammar/grammar_states.h"

namespace chasqui {

struct SchemaCase {
  const char* schema;
  std::vector<const char*> taken;
  std::vector<const char*> refused;
};

class SchemaTexts {
 public:
  static Result<SchemaTexts> of(const std::string& schema, SchemaOrder order) {
    auto written = write_schema_grammar(boost::json::parse(schema), "schema", true, order);
    if (!written) return written.error();
    const auto read = parse_gbnf(written->text);
    if (!read) return read.error();
    auto automaton = GrammarAutomaton::compile(*read);
    if (!automaton) return automaton.error();
    return SchemaTexts(std::make_shared<const GrammarAutomaton>(std::move(*automaton)), std::move(written->text));
  }

  bool take(std::string_view text) { return states_.is_complete(states_.after_bytes(states_.start(), text)); }
  const std::string& grammar() const { return grammar_; }

 private:
  SchemaTexts(std::shared_ptr<const GrammarAutomaton> automaton, std::string grammar)
      : states_(std::move(automaton)), grammar_(std::move(grammar)) {}

  GrammarStates states_;
  std::string grammar_;
};

// What is not as the cases say; empty: nothing.
inline std::string wrong_texts(const std::vector<SchemaCase>& cases, SchemaOrder order = SchemaOrder::written) {
  std::string out;
  for (const auto& [schema, taken, refused] : cases) {
    auto texts = SchemaTexts::of(schema, order);
    if (!texts) {
      out += std::string(schema) + ": " + texts.error().message + '\n';
      continue;
    }
    const auto expect = [&](const std::vector<const char*>& given, bool takes) {
      for (const char* const text : given) {
        if (texts->take(text) == takes) continue;
        out += std::string(schema) + (takes ? " refuses " : " takes ") + text + '\n' + texts->grammar() + '\n';
      }
    };
    expect(taken, true);
    expect(refused, false);
  }
  return out;
}

}  // namespace chasqui
