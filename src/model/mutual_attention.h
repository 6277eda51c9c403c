// While it lives, the rows of a batch see each other, and not only those before them: some projectors make pictures
// that are read so. Worker thread only.
#pragma once

#include <llama.h>

namespace chasqui {

class MutualAttention {
 public:
  MutualAttention(llama_context* context, bool wanted) : context_(wanted ? context : nullptr) {
    if (context_ != nullptr) llama_set_causal_attn(context_, false);
  }
  ~MutualAttention() {
    if (context_ != nullptr) llama_set_causal_attn(context_, true);
  }
  MutualAttention(const MutualAttention&) = delete;
  MutualAttention& operator=(const MutualAttention&) = delete;

 private:
  llama_context* const context_;
};

}  // namespace chasqui
