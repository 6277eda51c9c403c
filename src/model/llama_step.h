// A step of ours in a chain of libllama's samplers. Owned by the chain; one thread at a time.
#pragma once

#include <memory>

#include "core/types.h"

struct llama_sampler;
struct llama_token_data_array;

namespace chasqui {

class LlamaStep {
 public:
  virtual ~LlamaStep() = default;
  virtual const char* name() const = 0;
  virtual void accept(Token /*token*/) {}
  virtual void apply(llama_token_data_array& row) = 0;
  // With its own state.
  virtual std::unique_ptr<LlamaStep> copy() const = 0;
};

// What a chain takes, and frees.
llama_sampler* new_step(std::unique_ptr<LlamaStep> step);

}  // namespace chasqui
