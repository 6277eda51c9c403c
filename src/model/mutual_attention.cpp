#include "model/mutual_attention.h"

#include <llama.h>

namespace chasqui {

MutualAttention::MutualAttention(llama_context* context, bool wanted) : context_(wanted ? context : nullptr) {
  if (context_ != nullptr) llama_set_causal_attn(context_, false);
}

MutualAttention::~MutualAttention() {
  if (context_ != nullptr) llama_set_causal_attn(context_, true);
}

}  // namespace chasqui
