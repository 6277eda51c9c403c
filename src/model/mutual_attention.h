// While it lives, the rows of a batch see each other, and not only those before them: some projectors make pictures
// that are read so. Worker thread only.
#pragma once

struct llama_context;

namespace chasqui {

class MutualAttention {
 public:
  // Without effect unless it is `wanted`.
  MutualAttention(llama_context* context, bool wanted);
  ~MutualAttention();
  MutualAttention(const MutualAttention&) = delete;
  MutualAttention& operator=(const MutualAttention&) = delete;

 private:
  llama_context* const context_;
};

}  // namespace chasqui
