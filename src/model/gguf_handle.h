// What gguf.h opens, closed when it is forgotten. For the sources of this folder that read GGUF files; one thread each.
#pragma once

#include <memory>

struct gguf_context;

namespace chasqui {

struct GgufFree {
  void operator()(gguf_context* file) const;
};
using GgufHandle = std::unique_ptr<gguf_context, GgufFree>;

}  // namespace chasqui
