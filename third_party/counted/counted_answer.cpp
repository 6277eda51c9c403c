// The parser of answers with a call of ours in each of its steps: it recurses with every bracket of a call's arguments, and
// a client may write the beginning of an answer itself.
namespace chasqui {

void count_answer_step();  // model/work_budget.cpp
extern const bool answer_steps_count;  // a reference to it links this file instead of libllama's
const bool answer_steps_count = true;

}  // namespace chasqui

#include "counted-peg-parser.cpp"
