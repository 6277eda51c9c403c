// For the tests of this folder: llama-server's flags as the model layer gets them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/llama_options.h"

namespace chasqui {

using Words = std::vector<std::string>;

// Each list is a flag and its values.
inline Result<LlamaOptionsPtr> try_flags(const std::vector<Words>& flags) {
  auto options = std::make_shared<LlamaOptions>();
  for (const Words& flag : flags) {
    if (auto set = options->set(flag.front(), std::span(flag).subspan(1)); !set) return set.error();
  }
  if (auto finished = options->finish(); !finished) return finished.error();
  return LlamaOptionsPtr(std::move(options));
}

inline LlamaOptionsPtr flags(const std::vector<Words>& flags) {
  auto options = try_flags(flags);
  CHECK(options, options ? "" : options.error().message);
  return *options;
}

}  // namespace chasqui
