// The tree of a JSON schema with a call of ours for each schema that its questions go into: of which types its values are is
// asked along every way through its references, and there may be any number of them.
namespace chasqui {

void count_schema_depth();  // model/work_budget.cpp
extern const bool schema_trees_count;  // a reference to it links this file instead of libllama's
const bool schema_trees_count = true;

}  // namespace chasqui

#include "counted-json-schema.cpp"
