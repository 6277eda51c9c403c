// The converter of JSON schemas with a call of ours for each rule that it makes, where it cleans the rule's name with a
// regular expression that recurses for every character, and for each schema that it goes into: within allOf it follows
// each $ref, also one that leads back. Repetitions that a grammar cannot hold have no upper end. What it says of a
// pattern that it cannot keep goes to the log instead of standard error.
#include <functional>
#include <regex>
#include <string>

#include "common.h"
#include "json-schema-to-grammar.h"
#include "trie.h"
#include "unicode.h"

namespace chasqui {

std::string count_schema_rule(const std::string& name);  // model/work_budget.cpp; the name that is clean
void count_schema_depth();
void count_schema_level(const std::string& name);
void count_schema_text(std::size_t bytes);
void bound_repetitions(int& most);
void note_incomplete_schema(const std::string& what);
extern const bool schema_rules_count;  // a reference to it links this file instead of libllama's
const bool schema_rules_count = true;

}  // namespace chasqui

using std::string;
#define regex_replace(name, expression, by) string(::chasqui::count_schema_rule(name))
#define fprintf(stream, format, text) ::chasqui::note_incomplete_schema(text)
#include "counted-json-schema-to-grammar.cpp"
