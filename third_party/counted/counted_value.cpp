// The values of the interpreter, with a call of ours for each piece that a text is split into.
#include "jinja/value.h"

namespace chasqui {

// model/work_budget.cpp
void count_template_step();
void count_template_piece();

}  // namespace chasqui

#include "counted-value.cpp"
