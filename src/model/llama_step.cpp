#include "model/llama_step.h"

#include <llama.h>

namespace chasqui {
namespace {

LlamaStep& step_of(const llama_sampler* sampler) { return *static_cast<LlamaStep*>(sampler->ctx); }

llama_sampler_i step_interface() {
  llama_sampler_i out{};
  out.name = [](const llama_sampler* self) { return step_of(self).name(); };
  out.accept = [](llama_sampler* self, llama_token token) { step_of(self).accept(token); };
  out.apply = [](llama_sampler* self, llama_token_data_array* row) { step_of(self).apply(*row); };
  out.clone = [](const llama_sampler* self) { return new_step(step_of(self).copy()); };
  out.free = [](llama_sampler* self) { std::unique_ptr<LlamaStep>(&step_of(self)).reset(); };
  return out;
}

}  // namespace

llama_sampler* new_step(std::unique_ptr<LlamaStep> step) {
  static llama_sampler_i interface = step_interface();
  return llama_sampler_init(&interface, step.release());
}

}  // namespace chasqui
