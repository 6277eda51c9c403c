// The interpreter with a call of ours in each of its steps, where it has a place for debug messages.
#include "jinja/runtime.h"
#include "jinja/utils.h"
#include "jinja/value.h"

namespace chasqui {

void count_template_step();              // model/work_budget.cpp
extern const bool template_steps_count;  // a reference to it links this file instead of libllama's
const bool template_steps_count = true;

}  // namespace chasqui

#undef JJ_DEBUG
#define JJ_DEBUG(...) ::chasqui::count_template_step()
#include "jinja/runtime.cpp"
